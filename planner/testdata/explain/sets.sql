ATTACH 'm.duckdb' AS m;

CREATE SOURCE visits (user_id BIGINT NOT NULL, page VARCHAR, day DATE) FROM 'visits/*.parquet';

CREATE SINK m.pages PRIMARY KEY (page, day) AS SELECT DISTINCT page, day FROM visits WHERE page <> '';

CREATE SINK m.reach PRIMARY KEY (page) AS
SELECT page, count(*) AS days FROM (SELECT DISTINCT page, day FROM visits WHERE page <> '') GROUP BY page;

CREATE SINK m.names PRIMARY KEY (name) AS
SELECT page AS name FROM visits
UNION
SELECT user_id::VARCHAR FROM visits;

CREATE SINK m.gone PRIMARY KEY (user_id) AS
SELECT user_id FROM visits WHERE day < DATE '2024-01-01'
EXCEPT
SELECT user_id FROM visits WHERE day >= DATE '2024-01-01';

CREATE SINK m.users PRIMARY KEY (page) AS
SELECT page, count(*) AS visits, count(DISTINCT user_id) AS users, count(DISTINCT day) FILTER (WHERE user_id > 0) AS days
FROM visits
GROUP BY page;
