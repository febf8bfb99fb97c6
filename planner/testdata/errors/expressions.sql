ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, sum(list_sum(list_transform(l, x -> x + 1))) AS n FROM t GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, sum(len(list_filter(l, lambda x: x > 1))) AS n FROM t GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE a = $1 GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE a = ? GROUP BY k;
CREATE SINK m.s5 PRIMARY KEY (k) AS SELECT k, min(c COLLATE NOCASE) AS n FROM t GROUP BY k;
CREATE SINK m.s6 PRIMARY KEY (k) AS SELECT k, sum(#2) AS n FROM t GROUP BY k;
CREATE SINK m.s7 PRIMARY KEY (k) AS SELECT k, sum(TRY(a + 1)) AS n FROM t GROUP BY k;
CREATE SINK m.s8 PRIMARY KEY (k) AS SELECT k, max(array_to_string(l, ',')) AS n FROM t GROUP BY k;
CREATE SINK m.s9 PRIMARY KEY (k) AS SELECT k, count(row(a, k)) AS n FROM t GROUP BY k;
CREATE SINK m.s10 PRIMARY KEY (k) AS SELECT k, max(c::BIGNUM) AS n FROM t GROUP BY k;
