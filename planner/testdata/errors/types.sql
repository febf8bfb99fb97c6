ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, min(c::DATTE) AS n FROM t GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, sum(a::DECIMAL(40,2)) AS n FROM t GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE ts >= DATE '2024-13-01' GROUP BY k;
CREATE SINK m.s4 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM t WHERE a > 'x1' GROUP BY k;
CREATE SINK m.s5 PRIMARY KEY (k) AS SELECT k, max(CASE WHEN a > 1 THEN ts ELSE 1 END) AS n FROM t GROUP BY k;
CREATE SINK m.s6 PRIMARY KEY (k) AS SELECT k, nullif('abc', 1) AS n FROM t GROUP BY k;
-- a type that is guessed in the place of a faulty one makes no further fault
CREATE SOURCE typo (k INTEGER, a DECIMALL(3,2)) FROM 'in/*.csv';
CREATE SINK m.typo PRIMARY KEY (k) AS SELECT k, sum(a) AS s FROM typo GROUP BY k;
