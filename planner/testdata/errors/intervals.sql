ATTACH 'm.duckdb' AS m;
CREATE SOURCE spans (k INTEGER, t INTEGER, i INTERVAL, n STRUCT(i INTERVAL)) FROM 'spans.parquet';
CREATE SINK m.span1 PRIMARY KEY (k) AS SELECT k, i FROM spans QUALIFY row_number() OVER (PARTITION BY k ORDER BY t DESC) = 1;
CREATE SINK m.span2 PRIMARY KEY (k) AS SELECT k, arg_max(n, t) AS n FROM spans GROUP BY k;
