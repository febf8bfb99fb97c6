-- Every statement on the schema etl, by name. {db} is the name the file is attached under.

-- name: has-schema
SELECT count(*) FILTER (table_name = 'meta'), count(*) FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'etl'

-- name: insert-meta
INSERT INTO {db}.etl.meta VALUES (uuid(), ?, ?)

-- name: meta
SELECT schema_version, location_hint FROM {db}.etl.meta

-- name: move-hint
UPDATE {db}.etl.meta SET location_hint = ?

-- name: pipelines
SELECT pipeline FROM {db}.etl.pipelines ORDER BY pipeline

-- name: pipeline
SELECT incarnation, fence, seq, last_batch, coalesce(plan_id, ''), coalesce(position, ''),
       coalesce(position_sha, ''), coalesce(manifest_sha, ''), coalesce(file_path, '')
FROM {db}.etl.pipelines WHERE pipeline = ?

-- name: traces
SELECT (SELECT count(*) FROM {db}.etl.manifests WHERE pipeline = $1 AND seq > $2)
     + (SELECT count(*) FROM {db}.etl.segment_use WHERE pipeline = $1 AND added_seq > $2)
     + (SELECT count(*) FROM {db}.etl.targets WHERE pipeline = $1 AND $2 = 0)

-- name: bump-fence
UPDATE {db}.etl.pipelines SET fence = fence + 1, file_path = nullif($2, '') WHERE pipeline = $1

-- name: insert-pipeline
INSERT INTO {db}.etl.pipelines (pipeline, incarnation, fence, seq, last_batch, file_path) VALUES ($1, 1, 1, 0, -1, nullif($2, ''))

-- name: take-lease
INSERT INTO {db}.etl.leases (pipeline, lane, holder, host, boot_id, pid, renewed_at) VALUES (?, 'live', ?, ?, ?, ?, now())
ON CONFLICT (pipeline, lane) DO UPDATE
SET holder = excluded.holder, host = excluded.host, boot_id = excluded.boot_id, pid = excluded.pid, renewed_at = excluded.renewed_at

-- name: release-lease
DELETE FROM {db}.etl.leases WHERE pipeline = ? AND lane = 'live' AND holder = ?

-- name: manifests
SELECT seq, incarnation, batch, attempt::VARCHAR, kind, parent_seq, parent_sha, plan_id, env, batch_time, position, counts,
       ranges_sha, live, checksum
FROM {db}.etl.manifests WHERE pipeline = ? AND seq BETWEEN ? AND ? ORDER BY seq DESC LIMIT ?

-- name: of-kind
SELECT seq FROM {db}.etl.manifests WHERE pipeline = ? AND kind = ? ORDER BY seq

-- name: insert-manifest
INSERT INTO {db}.etl.manifests (pipeline, seq, incarnation, batch, attempt, kind, parent_seq, parent_sha, plan_id, env,
       batch_time, position, counts, ranges_sha, live, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: advance
UPDATE {db}.etl.pipelines SET seq = ?, last_batch = ?, plan_id = ?, position = ?, position_sha = ?, manifest_sha = ?
WHERE pipeline = ? AND incarnation = ? AND fence = ? AND seq = ? AND coalesce(manifest_sha, '') = ?

-- name: confirm
SELECT count(*) FROM {db}.etl.manifests m
WHERE pipeline = $1 AND seq = $2 AND attempt = $3 AND (SELECT seq FROM {db}.etl.pipelines WHERE pipeline = $1) = $2

-- name: plan
SELECT plan_id, canon_version, input_h, state_h, output_h, env_h, sql, canonical FROM {db}.etl.plans WHERE plan_id = ?

-- name: insert-plan
INSERT INTO {db}.etl.plans SELECT $1, $2, $3, $4, $5, $6, $7, $8
WHERE NOT EXISTS (FROM {db}.etl.plans WHERE plan_id = $1)

-- name: insert-ranges
INSERT INTO {db}.etl.ranges (pipeline, seq, source, split_id, from_off, to_off, rows, content_id)
SELECT ?, ?, unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::BIGINT[]), unnest(?::BIGINT[]), unnest(?::BIGINT[]), unnest(?::VARCHAR[])

-- name: consumed
SELECT source, split_id, from_off, to_off, rows, content_id FROM {db}.etl.ranges WHERE pipeline = ? AND seq = ? ORDER BY rowid

-- name: forget-manifest
DELETE FROM {db}.etl.manifests WHERE pipeline = ? AND seq = ?

-- name: insert-segments
INSERT INTO {db}.etl.segments (pipeline, segment_id, step_id, level, seq_lo, seq_hi, rows, bytes, parts, schema, sha256)
SELECT ?, unnest(?::UUID[]), unnest(?::VARCHAR[]), unnest(?::BIGINT[]), unnest(?::BIGINT[]), unnest(?::BIGINT[]), unnest(?::BIGINT[]),
       unnest(?::BIGINT[]), unnest(?::BIGINT[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[])

-- name: insert-parts
INSERT INTO {db}.etl.segment_parts VALUES (?, ?, ?)

-- name: remove-segments
UPDATE {db}.etl.segment_use SET removed_seq = $1
WHERE pipeline = $2 AND incarnation = $3 AND removed_seq IS NULL AND segment_id::VARCHAR IN (SELECT unnest($4::VARCHAR[]))

-- name: remove-all-segments
UPDATE {db}.etl.segment_use SET removed_seq = $1 WHERE pipeline = $2 AND incarnation = $3 AND removed_seq IS NULL AND added_seq < $1

-- name: forget-uses
DELETE FROM {db}.etl.segment_use u
WHERE pipeline = $1 AND incarnation = $2 AND removed_seq IS NOT NULL
  AND NOT EXISTS (FROM (SELECT unnest($3::BIGINT[]) AS seq) k WHERE k.seq >= u.added_seq AND k.seq < u.removed_seq)

-- name: collect-parts
DELETE FROM {db}.etl.segment_parts WHERE segment_id IN (
  SELECT segment_id FROM {db}.etl.segments WHERE pipeline = $1 AND segment_id NOT IN (SELECT segment_id FROM {db}.etl.segment_use)
     AND segment_id::VARCHAR NOT IN (SELECT unnest(string_split(coalesce(staging, ''), ' ')) FROM {db}.etl.jobs))

-- name: collect-segments
DELETE FROM {db}.etl.segments
WHERE pipeline = $1 AND segment_id NOT IN (SELECT segment_id FROM {db}.etl.segment_use)
  AND segment_id::VARCHAR NOT IN (SELECT unnest(string_split(coalesce(staging, ''), ' ')) FROM {db}.etl.jobs)

-- name: forget-checkpoints
DELETE FROM {db}.etl.checkpoints WHERE pipeline = ? AND incarnation = ?

-- name: keep-checkpoints
INSERT INTO {db}.etl.checkpoints SELECT ?, ?, unnest(?::BIGINT[]), unnest(?::VARCHAR[])

-- name: seq-of
SELECT coalesce(max(seq), 0) FROM {db}.etl.manifests WHERE pipeline = ? AND batch = ? AND kind = 'batch'

-- name: batch-of
SELECT batch FROM {db}.etl.manifests WHERE pipeline = ? AND seq = ?

-- name: ranges
SELECT r.source, r.split_id, r.content_id, r.seq, m.batch, r.from_off, r.to_off, r.rows, coalesce(x.n, 0)
FROM {db}.etl.ranges r
JOIN {db}.etl.manifests m ON m.pipeline = r.pipeline AND m.seq = r.seq
LEFT JOIN (SELECT seq, lower(source) AS source, split_id, count(*) AS n FROM {db}.etl.rejects WHERE pipeline = $1 GROUP BY ALL) x
  ON x.seq = r.seq AND x.source = lower(r.source) AND x.split_id = r.split_id
LEFT JOIN (SELECT lower(a.source) AS source, max(a.seq) AS seq FROM {db}.etl.ranges a
           JOIN {db}.etl.manifests b ON b.pipeline = a.pipeline AND b.seq = a.seq
           WHERE a.pipeline = $1 AND b.kind = 'rebuild' GROUP BY ALL) anew ON anew.source = lower(r.source)
LEFT JOIN (SELECT lower(source) AS source, split_id, max(seq) AS seq FROM {db}.etl.ranges WHERE pipeline = $1 AND from_off = 0 GROUP BY ALL) begun
  ON begun.source = lower(r.source) AND begun.split_id = r.split_id
WHERE r.pipeline = $1 AND r.seq >= coalesce(anew.seq, 0) AND r.seq >= coalesce(begun.seq, 0)
ORDER BY r.source, r.seq, r.split_id

-- name: rejects
SELECT j.source, j.split_id, j.off, j.line, j.reason, j.raw, m.batch, j.seq
FROM {db}.etl.rejects j JOIN {db}.etl.manifests m ON m.pipeline = j.pipeline AND m.seq = j.seq
LEFT JOIN (SELECT lower(a.source) AS source, max(a.seq) AS seq FROM {db}.etl.ranges a
           JOIN {db}.etl.manifests b ON b.pipeline = a.pipeline AND b.seq = a.seq
           WHERE a.pipeline = {pipeline} AND b.kind = 'rebuild' GROUP BY ALL) anew ON anew.source = lower(j.source)
LEFT JOIN (SELECT lower(source) AS source, split_id, max(seq) AS seq FROM {db}.etl.ranges WHERE pipeline = {pipeline} AND from_off = 0 GROUP BY ALL) begun
  ON begun.source = lower(j.source) AND begun.split_id = j.split_id
WHERE j.pipeline = {pipeline} AND j.seq >= coalesce(anew.seq, 0) AND j.seq >= coalesce(begun.seq, 0)

-- name: points
SELECT seq, batch_time FROM {db}.etl.manifests
WHERE pipeline = $1 AND incarnation = $2
  AND (seq IN (SELECT seq FROM {db}.etl.checkpoints WHERE pipeline = $1 AND incarnation = $2)
       OR seq > coalesce((SELECT max(seq) FROM {db}.etl.checkpoints WHERE pipeline = $1 AND incarnation = $2), 0))
ORDER BY seq

-- name: use-segments
INSERT INTO {db}.etl.segment_use (pipeline, incarnation, segment_id, added_seq) SELECT ?, ?, unnest(?::UUID[]), ?

-- name: segments
SELECT s.segment_id::VARCHAR, step_id, level, seq_lo, seq_hi, rows, bytes, schema, sha256
FROM {db}.etl.segment_use u JOIN {db}.etl.segments s ON s.segment_id = u.segment_id
WHERE u.pipeline = $1 AND u.incarnation = $2 AND u.added_seq <= $3 AND (u.removed_seq IS NULL OR u.removed_seq > $3)
ORDER BY seq_lo, seq_hi, step_id

-- name: parts
SELECT part, data FROM {db}.etl.segment_parts WHERE segment_id = ? ORDER BY part

-- name: targets
SELECT schema_name, table_name, t.pipeline, sink, table_identity::VARCHAR, key_cols, own_cols, coalesce(file_path, '')
FROM {db}.etl.targets t LEFT JOIN {db}.etl.pipelines p ON p.pipeline = t.pipeline

-- name: insert-target
INSERT INTO {db}.etl.targets VALUES (?, ?, ?, ?, ?::VARCHAR[], ?::VARCHAR[], ?, ?)

-- name: forget-target
DELETE FROM {db}.etl.targets WHERE pipeline = $1 AND lower(schema_name) = lower($2) AND lower(table_name) = lower($3)

-- name: fit-target
UPDATE {db}.etl.targets SET sink = $4, key_cols = $5::VARCHAR[], own_cols = $6::VARCHAR[]
WHERE pipeline = $1 AND lower(schema_name) = lower($2) AND lower(table_name) = lower($3)

-- name: table
SELECT coalesce(comment, '') FROM duckdb_tables()
WHERE database_name = ? AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?)

-- name: marked
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ? AND contains(comment, ?)

-- name: has-view
SELECT count(*) FROM duckdb_views() WHERE database_name = ? AND lower(schema_name) = lower(?) AND lower(view_name) = lower(?)

-- name: constraints
SELECT table_name, constraint_type, constraint_text, constraint_column_names FROM duckdb_constraints()
WHERE database_name = $1 AND lower(schema_name) = lower($2)
  AND (lower(table_name) = lower($3) AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
       OR constraint_type = 'FOREIGN KEY' AND lower(referenced_table) = lower($3))
ORDER BY constraint_index

-- name: indexes
SELECT schema_name, index_name FROM duckdb_indexes()
WHERE database_name = ? AND lower(schema_name) = lower(?) AND lower(table_name) = lower(?) ORDER BY index_name

-- name: known
SELECT (SELECT count(*) FROM {db}.etl.pipelines WHERE pipeline = $1) + (SELECT count(*) FROM {db}.etl.manifests WHERE pipeline = $1)
         + (SELECT count(*) FROM {db}.etl.segment_use WHERE pipeline = $1) + (SELECT count(*) FROM {db}.etl.targets WHERE pipeline = $1),
       coalesce((SELECT max(last_batch) FROM {db}.etl.pipelines WHERE pipeline = $1), -1),
       (SELECT count(*) FROM {db}.etl.manifests WHERE pipeline = $1),
       (SELECT count(DISTINCT (source, split_id)) FROM {db}.etl.ranges WHERE pipeline = $1),
       (SELECT count(*) FROM {db}.etl.rejects WHERE pipeline = $1),
       (SELECT coalesce(sum(bytes), 0)::BIGINT FROM {db}.etl.segments WHERE pipeline = $1)

-- name: owned
SELECT schema_name, table_name, sink, table_identity::VARCHAR, taken_over, key_cols, own_cols FROM {db}.etl.targets WHERE pipeline = ? ORDER BY sink

-- name: of-pipelines
SELECT table_name FROM duckdb_columns()
WHERE database_name = ? AND schema_name = 'etl' AND column_name = 'pipeline'
  AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE schema_name = 'etl') ORDER BY table_name

-- name: forget-parts
DELETE FROM {db}.etl.segment_parts WHERE segment_id IN (SELECT segment_id FROM {db}.etl.segments WHERE pipeline = ?)

-- name: forget-plans
DELETE FROM {db}.etl.plans
WHERE plan_id IN (SELECT plan_id FROM {db}.etl.manifests WHERE pipeline = $1)
  AND plan_id NOT IN (SELECT plan_id FROM {db}.etl.manifests WHERE pipeline <> $1)

-- name: reseal-manifests
UPDATE {db}.etl.manifests m SET parent_sha = n.parent, checksum = n.sum
FROM (SELECT unnest($2::BIGINT[]) AS seq, unnest($3::VARCHAR[]) AS parent, unnest($4::VARCHAR[]) AS sum) n
WHERE m.pipeline = $1 AND m.seq = n.seq

-- name: reseal-pipeline
UPDATE {db}.etl.pipelines p SET fence = fence + 1, file_path = nullif($2, ''),
       manifest_sha = (SELECT checksum FROM {db}.etl.manifests m WHERE m.pipeline = $1 AND m.seq = p.seq)
WHERE pipeline = $1

-- name: adopt-copy
UPDATE {db}.etl.meta SET destination_uuid = uuid(), location_hint = ?

-- name: forget-files
UPDATE {db}.etl.pipelines SET file_path = NULL

-- name: forget-leases
DELETE FROM {db}.etl.leases WHERE pipeline = ?

-- name: job
SELECT base_seq, spec, coalesce(staging, '') FROM {db}.etl.jobs WHERE pipeline = ? AND kind = ?

-- name: jobs
SELECT kind, base_seq, spec FROM {db}.etl.jobs WHERE pipeline = ? ORDER BY kind

-- name: job-segments
SELECT segment_id::VARCHAR, step_id, level, seq_lo, seq_hi, rows, bytes, schema, sha256
FROM {db}.etl.segments WHERE pipeline = ? AND segment_id::VARCHAR IN (SELECT unnest(?::VARCHAR[])) ORDER BY step_id

-- name: insert-job
INSERT INTO {db}.etl.jobs (id, pipeline, lane, kind, base_seq, spec, staging, status) VALUES (uuid(), ?, 'build', ?, ?, ?, ?, 'saved')

-- name: forget-job-parts
DELETE FROM {db}.etl.segment_parts WHERE segment_id::VARCHAR IN
  (SELECT unnest(string_split(coalesce(staging, ''), ' ')) FROM {db}.etl.jobs WHERE pipeline = ? AND kind = ?)

-- name: forget-job-segments
DELETE FROM {db}.etl.segments WHERE segment_id::VARCHAR IN
  (SELECT unnest(string_split(coalesce(staging, ''), ' ')) FROM {db}.etl.jobs WHERE pipeline = ? AND kind = ?)

-- name: forget-job
DELETE FROM {db}.etl.jobs WHERE pipeline = ? AND kind = ?
