ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT,
  a VARCHAR METADATA FROM 'file_name',
  b VARCHAR METADATA FROM 'mtime',
  filname VARCHAR METADATA,
  filename VARCHAR METADATA
) FROM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
