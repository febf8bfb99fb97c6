CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv';
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
