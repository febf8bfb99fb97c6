-- A pipeline: where rows come from, a SELECT, and the keyed table that holds its result.
-- Paths are relative to this file. Check it with `etl check`, run it with `etl run`.

-- The database that gets the table. The first run creates the file.
ATTACH 'mart.duckdb' AS mart;

-- Every file that matches is read once; new files are new rows. `etl infer 'landing/orders/*.csv'`
-- writes this statement from real files.
CREATE SOURCE orders (
  order_id   BIGINT NOT NULL,
  ordered_at TIMESTAMP NOT NULL,
  store      VARCHAR,
  amount     DECIMAL(12,2)
) FROM 'landing/orders/*.csv';

-- The table always equals this SELECT over all rows read so far, one row per key.
CREATE SINK mart.daily_sales PRIMARY KEY (day, store) AS
SELECT ordered_at::DATE AS day, store, count(*) AS orders, sum(amount) AS revenue
FROM orders
GROUP BY ALL;
