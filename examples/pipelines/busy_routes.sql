-- Routes flown at least twenty times in either direction: a route enters the table
-- with its twentieth flight. The columns come from the Parquet files.
ATTACH 'mart.duckdb' AS mart;

CREATE SOURCE legs FROM 'landing/routes/*.parquet';

CREATE VIEW routes AS
SELECT least(origin, destination) AS a, greatest(origin, destination) AS b, distance, delay
FROM legs;

CREATE SINK mart.busy_routes PRIMARY KEY (a, b) AS
SELECT a, b, count(*) AS flights, min(distance) AS miles, sum(delay) AS delay_minutes
FROM routes
GROUP BY a, b
HAVING count(*) >= 20;
