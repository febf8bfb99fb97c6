ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT PRIMARY KEY,
  amount DOUBLE DEFAULT 0,
  net DOUBLE CHECK (net > 0),
  tax DOUBLE NULL,
  note VARCHAR UNIQUE
) FROM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
