-- The SELECTs of the equivalence tests. Each must equal itself, run once over all rows read so far,
-- after every batch. "name: key columns", then the query.

-- grouped: k
SELECT k, count(*) AS n, count(a) AS na, sum(a) AS sa, sum(b) AS sb, avg(a) AS aa, avg(b) AS ab, min(c) AS mc, max(ts) AS mt FROM t GROUP BY k;

-- no group:
SELECT count(*) AS n, sum(a) AS s, min(b) AS m, max(c) AS x, avg(e) AS v FROM t WHERE a > 30;

-- no group, having:
SELECT count(*) AS n FROM t HAVING count(*) % 2 = 1;

-- expressions: day, cc
SELECT date_trunc('day', ts) AS day, c AS cc, sum(b) AS s, s + 1 AS s1 FROM t WHERE cc <> 'a' OR cc IS NULL GROUP BY ALL ORDER BY 1;

-- having: k, c
SELECT k, c, sum(a) AS s FROM t GROUP BY 1, 2 HAVING s % 2 = 0;

-- filters: k
SELECT k, count(*) FILTER (c = 'a') AS n, sum(b) FILTER (WHERE a > 5) AS s, max(b) FILTER (a < 10) AS m FROM t GROUP BY k;

-- booleans: k
SELECT k, bool_and(f) AS x, bool_or(f) AS y, count_if(f) AS z FROM t GROUP BY k;

-- moments: k
SELECT k, stddev(a) AS s, var_pop(a) AS v, var_samp(d) AS w, stddev_pop(e) AS p FROM t GROUP BY k;

-- floats: k
SELECT k, sum(d) AS s, avg(d) AS v, min(d) AS lo, max(d) AS hi FROM t GROUP BY k;

-- aggregate of aggregate: n
SELECT n, count(*) AS groups, sum(s) AS s, avg(s) AS v, bool_or(s > 100) AS b FROM (SELECT k, c, count(*) % 4 AS n, sum(a) AS s FROM t GROUP BY k, c) GROUP BY n;

-- three deep: q
WITH x AS (SELECT k, c, sum(a) AS s, count(*) AS n FROM t GROUP BY ALL), y AS (SELECT k, sum(s) AS m, count(*) AS n FROM x GROUP BY k HAVING count(*) > 2) SELECT m % 3 AS q, count(*) AS z, sum(n) AS sn FROM y GROUP BY q;

-- union all below: k
SELECT k, count(*) AS n, sum(v) AS s, min(v) AS m FROM (SELECT k, a::BIGINT AS v FROM t UNION ALL SELECT a % 8, e FROM t WHERE f) GROUP BY k;

-- union all above: kind, k
SELECT 'k' AS kind, k, count(*) AS n FROM t GROUP BY k UNION ALL SELECT 'a' AS kind, a % 3, sum(e)::BIGINT FROM t GROUP BY 2;

-- common table expression read twice: k
WITH x AS (SELECT k, c, sum(a) AS s, count(*) AS n FROM t GROUP BY k, c) SELECT k, sum(s) AS s, count(*) AS n FROM (SELECT k, s FROM x UNION ALL SELECT k, n FROM x WHERE n > 2) GROUP BY k;

-- time zone: day
SELECT (timezone('UTC', ts) AT TIME ZONE 'Europe/Berlin')::DATE AS day, count(*) AS n FROM t GROUP BY day;
