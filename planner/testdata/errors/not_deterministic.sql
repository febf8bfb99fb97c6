ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > now() GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > current_date - 7 GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > current_timestamp GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, max(age(ts)) AS n FROM t GROUP BY k;
CREATE SINK m.s5 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > ago(INTERVAL '1 day') GROUP BY k;
CREATE SINK m.s6 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE random() < 0.1 GROUP BY k;
CREATE SINK m.s7 PRIMARY KEY (k) AS SELECT k, min(uuid()) AS n FROM t GROUP BY k;
CREATE SINK m.s8 PRIMARY KEY (k) AS SELECT k, min(user) AS n FROM t GROUP BY k;
CREATE SINK m.s9 PRIMARY KEY (k) AS SELECT k, min(current_setting('threads')) AS n FROM t GROUP BY k;
CREATE SINK m.s10 PRIMARY KEY (k) AS SELECT k, min(hash(a)) AS n FROM t GROUP BY k;
CREATE SINK m.s11 PRIMARY KEY (k) AS SELECT k, min(list_distinct(l)[1]) AS n FROM t GROUP BY k;
CREATE SINK m.s12 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts < pg_conf_load_time() GROUP BY k;
