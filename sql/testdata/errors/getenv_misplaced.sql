ATTACH 'mart.duckdb' AS mart;
SET VARIABLE region = getenv('REGION');
CREATE SOURCE orders (
  id BIGINT,
  r VARCHAR AS (getenv('REGION')),
  CHECK (id > GETENV('MIN')::INT),
  WATERMARK FOR id AS id - getenv('LAG')::INT
) FROM 'orders/*.csv' ENVELOPE UPSERT SEQUENCE BY (getenv('A')) DELETE WHEN ("getenv"('B'));
CREATE VIEW v AS SELECT getenv('X'), t.getenv, 'getenv(' FROM orders t;
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
