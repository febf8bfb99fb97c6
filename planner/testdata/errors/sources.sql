ATTACH 'm.duckdb' AS m;
CREATE SOURCE t (k INTEGR, a DECIMAL(40,2), v VARIANT, x BIGNUM) FROM 't.parquet';
CREATE SOURCE u FROM 'u.csv';
CREATE SOURCE ok (k INTEGER, a INTEGER) FROM 'ok.parquet';
CREATE SINK m.s1 PRIMARY KEY (k) AS SELECT k, count(*) AS n FROM u GROUP BY k;
CREATE SINK m.s2 PRIMARY KEY (k) AS SELECT k, sum(aa) AS n FROM ok GROUP BY k;
CREATE SINK m.s3 PRIMARY KEY (k) WITH (recompute = true) AS SELECT k, median(a) AS n FROM ok GROUP BY k;
