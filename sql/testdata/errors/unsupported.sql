ATTACH 'host=db' AS mart (TYPE duckdb);
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  net DECIMAL(12,2) AS (gross / 1.19),
  file VARCHAR METADATA FROM 'filename',
  ts TIMESTAMPTZ,
  PRIMARY KEY (id, ts),
  WATERMARK FOR ts AS ts - INTERVAL '1 day',
  CONSTRAINT positive CHECK (net > 0) ON VIOLATION FAIL
) FROM 'orders/*.csv'
  ENVELOPE UPSERT SEQUENCE BY (ts) DELETE WHEN (id < 0)
  WITH (files = 'snapshot', header = true);
CREATE SOURCE customers FROM crm.public.customers;
CREATE SOURCE logs FROM 'logs/*.json' WITH (files = 'append');
CREATE SINK mart.totals PRIMARY KEY (id) EMIT FINAL AS SELECT id FROM orders;
CREATE TEST t FOR totals AS GIVEN orders (VALUES (1)) EXPECT (VALUES (1));
CREATE AUDIT a FOR totals ON VIOLATION WARN AS SELECT 1;
