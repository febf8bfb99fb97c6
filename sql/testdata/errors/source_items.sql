ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id,
  offset BIGINT,
  VARCHAR,
  net DOUBLE AS net * 2,
  gross DOUBLE AS (),
  file METADATA FROM 'filename',
  line BIGINT METADATA FROM file_row_number,
  CHECK amount > 0,
  CHECK (amount > 0) ON VIOLATION IGNORE,
  CONSTRAINT CHECK (amount > 0),
  PRIMARY KEY (),
  WATERMARK FOR ts,
  WATERMARK FOR ts AS,
  ts TIMESTAMP WITH TIME,
  'a' INT,
) FROM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
