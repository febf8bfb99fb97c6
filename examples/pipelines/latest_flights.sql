-- The last flight that left on each route: all its columns, not only its time.
-- Departures arrive as JSON lines, in any order; of two flights of the same minute the one that stands
-- later in the files counts.
ATTACH 'mart.duckdb' AS mart;

CREATE SOURCE departures (
  scheduled_at TIMESTAMP NOT NULL,
  origin       VARCHAR   NOT NULL,
  destination  VARCHAR   NOT NULL,
  distance     INTEGER,            -- miles
  delay        INTEGER             -- minutes late at arrival
) FROM 'landing/departures/*.jsonl';

CREATE SINK mart.latest_flights PRIMARY KEY (origin, destination) AS
SELECT origin, destination, scheduled_at, delay
FROM departures
QUALIFY row_number() OVER (PARTITION BY origin, destination ORDER BY scheduled_at DESC) = 1;
