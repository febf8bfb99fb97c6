ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, summ(a) AS n FROM t GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, foo(a) AS n FROM t GROUP BY k, n;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, sum(dat_trunc('day', ts)) AS n FROM t GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, sum(c) AS n FROM t GROUP BY k;
CREATE SINK m.s5 PRIMARY KEY (k) AS SELECT k, sum(a + ts) AS n FROM t GROUP BY k;
CREATE SINK m.s6 PRIMARY KEY (k) AS SELECT k, date_trunc('day', c) AS n FROM t GROUP BY k, n;
CREATE SINK m.s7 PRIMARY KEY (k) AS SELECT k, round(a, c) AS n FROM t GROUP BY k, n;
CREATE SINK m.s8 PRIMARY KEY (k) AS SELECT k, sum(a, 3) AS n FROM t GROUP BY k;
CREATE SINK m.s9 PRIMARY KEY (k) AS SELECT k, date_trunc('dya', ts) AS day, count(*) AS n FROM t GROUP BY k, day;
CREATE SINK m.s10 PRIMARY KEY (k) AS SELECT k, strptime(c, c) AS n FROM t GROUP BY k, n;
CREATE SINK m.s11 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE regexp_matches(c, '(') GROUP BY k;
