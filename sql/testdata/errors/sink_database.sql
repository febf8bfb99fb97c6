ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv';
CREATE SINK mrat.totals PRIMARY KEY (id) AS SELECT id FROM orders;
CREATE SINK totals PRIMARY KEY (id) AS SELECT id FROM orders;
CREATE SINK warehouse.totals PRIMARY KEY (id) AS SELECT id FROM orders;
