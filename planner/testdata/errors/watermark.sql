ATTACH 'm.duckdb' AS m;
CREATE SOURCE a (at_us BIGINT, x VARCHAR, WATERMARK FOR at_us AS at_us - 5) FROM 'a.parquet';
CREATE SOURCE b (moment TIMESTAMP, x VARCHAR, WATERMARK FOR moment AS x) FROM 'b.parquet';
CREATE SOURCE c (moment TIMESTAMP, x VARCHAR, WATERMARK FOR moment AS momet - INTERVAL '1 day') FROM 'c.parquet';
CREATE SOURCE d (moment TIMESTAMP, x VARCHAR, WATERMARK FOR moment AS now() - INTERVAL '1 day') FROM 'd.parquet';
CREATE SOURCE e (moment TIMESTAMP, x VARCHAR, WATERMARK FOR moment AS max(moment)) FROM 'e.parquet';
CREATE SOURCE f (moment TIMESTAMPTZ, x VARCHAR, WATERMARK FOR moment AS moment - INTERVAL '1 day') FROM 'f.parquet';
CREATE SINK m.t PRIMARY KEY () AS SELECT count(*) AS n FROM f;
