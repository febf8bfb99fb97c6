ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  amount DECIMAL(12,2)
) FROM 'orders/*.csv';
CREATE SINK mart.t PRIMARY KEY () AS SELECT $tag$ it never ends $$;
