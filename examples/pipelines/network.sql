-- Two tables from one pass over the same files: where one can fly from each airport, and how the network
-- looked each day. Both move in the same transaction, so they never tell of different days.
ATTACH 'mart.duckdb' AS mart;

CREATE SOURCE legs FROM 'landing/routes/*.parquet';

CREATE SINK mart.airports PRIMARY KEY (origin) AS
SELECT
  origin,
  count(*)                                       AS flights,
  count(DISTINCT destination)                    AS destinations,
  count(DISTINCT destination) FILTER (WHERE distance > 1000) AS far_destinations
FROM legs
GROUP BY origin;

CREATE SINK mart.network_days PRIMARY KEY (day) AS
SELECT
  scheduled_at::DATE                             AS day,
  count(*)                                       AS flights,
  count(DISTINCT origin)                         AS airports,
  count(DISTINCT least(origin, destination) || '-' || greatest(origin, destination)) AS routes
FROM legs
GROUP BY day;
