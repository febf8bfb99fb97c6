ATTACH 'mart.duckdb' AS mart
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv'
CREATE VIEW v AS SELECT * FROM orders -- all
CREATE SINK mart.totals PRIMARY KEY () AS SELECT count(*) AS n FROM v
