-- How punctual were flights, per day and airport of departure?
-- Each day arrives as one CSV file in landing/flights.
ATTACH 'mart.duckdb' AS mart;

CREATE SOURCE flights (
  scheduled_at TIMESTAMP NOT NULL,
  origin       VARCHAR   NOT NULL,
  destination  VARCHAR   NOT NULL,
  distance     INTEGER,            -- miles
  delay        INTEGER             -- minutes late at arrival; negative is early
) FROM 'landing/flights/*.csv';

CREATE SINK mart.daily_flights PRIMARY KEY (day, origin) AS
SELECT
  scheduled_at::DATE                    AS day,
  origin,
  count(*)                              AS flights,
  count(*) FILTER (WHERE delay > 15)    AS late,
  sum(distance)                         AS miles,
  round(avg(delay), 1)                  AS mean_delay,
  max(delay)                            AS worst_delay
FROM flights
GROUP BY ALL;
