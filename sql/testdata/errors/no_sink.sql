ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv';
