ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, l INTEGER[]) FROM 't.parquet';

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, arg_max(c, n) AS x FROM (SELECT k, c, count(*) AS n FROM t GROUP BY k, c) GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, first(n ORDER BY n, a) AS y, first(c ORDER BY n) AS x FROM (SELECT k, c, a, count(*) AS n FROM t GROUP BY k, c, a) GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, last(v ORDER BY abs(v)) AS x FROM (SELECT k, a AS v FROM t UNION ALL SELECT a, k FROM t) GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, first(a ORDER BY k) AS x FROM t GROUP BY k;
CREATE SINK m.s5 PRIMARY KEY (k) AS SELECT k, first(a ORDER BY l) AS x FROM t GROUP BY k;
CREATE SINK m.s6 PRIMARY KEY (k) AS SELECT k, arg_min(c, v) AS x FROM (SELECT k, c, avg(a) AS v FROM t GROUP BY k, c) GROUP BY k;
CREATE SINK m.s7 PRIMARY KEY (k) AS SELECT k, arg_max(a, ts ORDER BY a) AS x FROM t GROUP BY k;
