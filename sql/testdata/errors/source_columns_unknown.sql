ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  order_id BIGINT,
  ordered_at TIMESTAMPTZ,
  PRIMARY KEY (oder_id, region),
  WATERMARK FOR orderd_at AS ordered_at - INTERVAL '2 days'
) FROM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
