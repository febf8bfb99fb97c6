ATTACH 'mart.duckdb' AS mart;

CREATE SOURCE orders (
  id BIGINT NOT NULL,
  ordered_at TIMESTAMP NOT NULL,
  store VARCHAR,
  status VARCHAR,
  amount DECIMAL(12,2),
  discount DECIMAL(12,2)
) FROM 'landing/*.csv';

CREATE SINK mart.sizes PRIMARY KEY (orders) AS
WITH per_store AS (
  SELECT store, count(*) AS orders, sum(amount) AS amount
  FROM (SELECT DISTINCT store, id, status, amount FROM orders)
  WHERE status = 'paid'
  GROUP BY store
)
SELECT orders, count(*) AS stores, sum(amount) AS amount
FROM per_store
GROUP BY orders;
