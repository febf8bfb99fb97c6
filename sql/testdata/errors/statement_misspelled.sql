ATTACH 'mart.duckdb' AS mart;
CREAT SOURCE a FROM 'a.parquet';
CREATE SORCE b FROM 'b.parquet';
ATACH 'x.duckdb' AS x;
CREATE SNIK mart.t PRIMARY KEY () AS SELECT 1;
