ATTACH 'mart.duckdb' AS mart;
/* the /* inner */ one ends, this one does not
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
