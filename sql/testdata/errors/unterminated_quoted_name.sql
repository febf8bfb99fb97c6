ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE "orders FROM 'orders/*.parquet';
