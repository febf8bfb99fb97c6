ATTACH 'm.duckdb' AS m;

CREATE SOURCE sales (day DATE NOT NULL, store VARCHAR, amount DECIMAL(12,2)) FROM 'sales/*.parquet';

CREATE SINK m.totals PRIMARY KEY (month, store, level) AS
SELECT date_trunc('month', day) AS month, store, grouping(date_trunc('month', day), store) AS level, sum(amount) AS amount
FROM sales
GROUP BY ROLLUP (date_trunc('month', day), store)
HAVING sum(amount) > 0;
