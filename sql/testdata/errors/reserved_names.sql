ATTACH 'x.duckdb' AS etl;
ATTACH 'm.duckdb' AS m;
CREATE SOURCE s (k INTEGER) FROM '*.csv';
CREATE SINK m.information_schema.t PRIMARY KEY (k) AS SELECT k FROM s GROUP BY k;
CREATE SINK m.ETL.t PRIMARY KEY (k) AS SELECT k FROM s GROUP BY k;
