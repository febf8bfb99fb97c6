ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

CREATE VIEW per_day AS
SELECT k, c, count(*) AS n,
  avg(a) AS v
FROM t
GROUP BY k, c;

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, max(n) AS n FROM per_day GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, sum(v) AS n FROM per_day GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT * FROM per_day;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, nullif(n, 'x1') AS n FROM per_day;
