ATTACH 'm.duckdb' AS m;

CREATE SOURCE events (id BIGINT, kind VARCHAR, user_id BIGINT, size INTEGER, happened TIMESTAMP) FROM 'events/*.parquet';
CREATE SOURCE unread (a INTEGER) FROM 'unread/*.parquet';

CREATE SINK m.total PRIMARY KEY () AS
SELECT count(*) AS events, count(*) FILTER (WHERE kind = 'click') AS clicks, stddev(size) AS spread FROM events;

CREATE SINK m.both PRIMARY KEY (part, name) AS
SELECT 'kind' AS part, kind AS name, count(*) AS n FROM events GROUP BY kind
UNION ALL
SELECT 'user', user_id::VARCHAR, count(*) FROM events WHERE size > 10 GROUP BY user_id::VARCHAR;

CREATE SINK m.users PRIMARY KEY (user_id) AS SELECT user_id FROM events GROUP BY ALL;
