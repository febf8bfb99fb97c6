ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT,
  ID BIGINT,
  PRIMARY KEY (id, id),
  PRIMARY KEY (id),
  WATERMARK FOR id AS id,
  WATERMARK FOR id AS id - 1,
  CONSTRAINT c CHECK (id > 0),
  CONSTRAINT c CHECK (id > 1)
) FROM 'orders/*.csv' WITH (header = true, delim = ';', HEADER = false);
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
