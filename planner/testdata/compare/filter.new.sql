-- daily sales per store
ATTACH 'mart.duckdb' AS mart;

CREATE SOURCE orders (
  id BIGINT NOT NULL,
  ordered_at TIMESTAMP NOT NULL,
  store VARCHAR,
  status VARCHAR,
  amount DECIMAL(12,2),
  discount DECIMAL(12,2)
) FROM 'landing/*.csv';

CREATE VIEW paid AS
SELECT * FROM orders WHERE status = 'paid';

CREATE SINK mart.daily PRIMARY KEY (day, store) AS
SELECT date_trunc('day', ordered_at)::DATE AS day, store,
  count(*) AS orders,
  sum(amount) AS revenue,          -- what was charged
  round(avg(amount), 2) AS mean
FROM paid
WHERE amount > 0
  AND discount < amount
GROUP BY ALL
HAVING count(*) > 1;
