ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv';
CREATE SINK mart.t PRIMARY KEY () AS SELECT a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, a_rather_long_column_name, getenv('X'), another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, another_rather_long_column_name, 1 FROM orders;
