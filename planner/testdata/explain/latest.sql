-- what each order is now, what each store sold last, and the best stores
ATTACH 'mart.duckdb' AS mart;

CREATE SOURCE changes (
  order_id BIGINT NOT NULL,
  changed_at TIMESTAMP NOT NULL,
  store VARCHAR,
  status VARCHAR,
  amount DECIMAL(12,2)
) FROM 'landing/*.json';

CREATE VIEW latest AS
SELECT * FROM changes
QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY changed_at DESC) = 1;

CREATE SINK mart.orders PRIMARY KEY (order_id) AS
SELECT order_id, store, status, amount FROM latest WHERE status <> 'deleted';

CREATE SINK mart.last_orders PRIMARY KEY (store, nth) AS
SELECT store, row_number() OVER newest AS nth, order_id FROM changes WHERE amount > 0
WINDOW newest AS (PARTITION BY store ORDER BY changed_at DESC NULLS LAST, order_id)
QUALIFY nth <= 3;

CREATE SINK mart.best PRIMARY KEY (store) AS
SELECT store, sum(amount) AS revenue FROM latest GROUP BY store
ORDER BY revenue DESC, store LIMIT 10;

CREATE SINK mart.last_seen PRIMARY KEY (store) AS
SELECT store, max_by(status, changed_at) AS status, last(amount ORDER BY changed_at, order_id) AS amount, count(*) AS changes
FROM changes GROUP BY store;
