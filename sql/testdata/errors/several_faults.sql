ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGNT NOT NUL,
  amount DECIMAL(12,2) DEFAULT 0
) FROM 'orders/*.csv' WITH (files = 'apend');
UPDATE x SET a = 1;
CREATE SINK mrt.totals PRIMARY KEY (id) EMIT FINAL AS
SELECT id FROM orders;
