ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM tt GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM orders GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM main.t GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM m.main.t GROUP BY k;
CREATE SINK m.s5 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM 'landing/*.parquet' GROUP BY k;
CREATE SINK m.s6 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM read_csv('x.csv') GROUP BY k;
CREATE SINK m.s7 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM range(3) r(k) GROUP BY k;
CREATE SINK m.s8 PRIMARY KEY (window_start) AS SELECT window_start, count(*) AS n FROM tumble(t, ts, INTERVAL '1 hour') GROUP BY 1;
CREATE SINK m.s9 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM (VALUES (1)) v(k) GROUP BY k;
CREATE SINK m.s10 PRIMARY KEY (k) AS SELECT 1 AS k;
CREATE SINK m.s11 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM duckdb_tables() GROUP BY k;
CREATE SINK m.s12 PRIMARY KEY (k) AS SELECT rowid AS k, count(*) AS n FROM t GROUP BY k;
