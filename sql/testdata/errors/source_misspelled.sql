ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT NOT NUL,
  PRIMRY KEY (id),
  WATERMRK FOR id AS id,
  CONSTRANT c CHECK (id > 0),
  CHEK (id > 0),
  file VARCHAR METDATA FROM 'filename',
  amount DECIMAL(12,2)
) FORM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
