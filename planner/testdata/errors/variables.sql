ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

SET VARIABLE cutoff = DATE '2024-01-01';
SET VARIABLE clock = now();
SET VARIABLE sub = (SELECT 1);
SET VARIABLE wrong = DATE '2024-99-01';
SET VARIABLE broken = 1 +;
CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > getvariable('cutof') GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > getvariable('since') GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > getvariable(c) GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts > getvariable('cutoff') GROUP BY k;
