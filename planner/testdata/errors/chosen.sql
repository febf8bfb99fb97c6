ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, l INTEGER[]) FROM 't.parquet';

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, first(a) AS x, last(a) AS y, any_value(a) AS z FROM t GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, arg_max(a, ts, 3) AS x FROM t GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, arg_max_nulls_last(a, ts) AS x FROM t GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, sum(a ORDER BY ts) AS x FROM t GROUP BY k;
