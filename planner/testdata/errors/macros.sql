ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

-- The fault lies in the body of a DuckDB macro: it has no place in this file.
CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, sum(nullif(l, ts)) AS n FROM t GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, max(split_part(a, ts, 1)) AS n FROM t GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) AS SELECT k, max(date_add(ts, 3)) AS n FROM t GROUP BY k;
