SET threads = 4;
SET VARABLE x = 1;
SET VARIABLE = 1;
SET VARIABLE x 1;
SET VARIABLE x = ;
ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
