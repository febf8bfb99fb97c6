ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders () FROM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
