ATTACH 'mart.duckdb' AS mart;
ATTACH 'other.duckdb' AS Mart;
SET VARIABLE x = 1;
SET VARIABLE X = 2;
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv';
CREATE SOURCE ORDERS FROM 'x.parquet';
CREATE VIEW orders AS SELECT 1;
CREATE VIEW v AS SELECT 1;
CREATE SOURCE v FROM 'x.parquet';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
CREATE SINK mart.main.Totals PRIMARY KEY (id, ID) AS SELECT 1 AS id;
CREATE TEST t FOR totals AS EXPECT ERROR 'x';
CREATE TEST T FOR totals AS EXPECT ERROR 'x';
