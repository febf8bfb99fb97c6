ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGER, a INTEGER, b DECIMAL(12,2), c VARCHAR, d DOUBLE, ts TIMESTAMP, f BOOLEAN, j JSON,
  l INTEGER[], s STRUCT(x INTEGER, y VARCHAR), e ENUM('b', 'a')) FROM 't.parquet';

-- Umlaute: äöü
CREATE SINK m.s1 PRIMARY KEY (k) AS /* größe */ SELECT k /* ☃ */, sum(amout) AS n -- trailing
FROM t GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, median(a) AS m, mode(c) AS d
FROM t
WHERE ts > now()
GROUP BY k
LIMIT 5;
CREATE SINK m.s3 PRIMARY KEY () AS SELECT count(*) AS n FROM t WHERE "käse" > 3;
