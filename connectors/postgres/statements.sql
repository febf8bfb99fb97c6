-- Every fixed statement, by name. All names are qualified: the search path of the transaction holds
-- nothing but pg_catalog.

-- name: has-schema
SELECT count(*) FILTER (WHERE c.relname = 'meta'), count(*)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'etl' AND c.relkind = 'r'

-- name: lock-schema
SELECT pg_advisory_xact_lock(7161132)

-- name: insert-meta
INSERT INTO etl.meta VALUES (gen_random_uuid(), $1, '')

-- name: meta
SELECT schema_version FROM etl.meta

-- name: pipelines
SELECT pipeline FROM etl.pipelines ORDER BY pipeline COLLATE "C"

-- name: pipeline
SELECT incarnation, fence, seq, last_batch, coalesce(plan_id, ''), coalesce(position, ''),
       coalesce(position_sha, ''), coalesce(manifest_sha, ''), coalesce(file_path, '')
FROM etl.pipelines WHERE pipeline = $1

-- name: seq
SELECT seq FROM etl.pipelines WHERE pipeline = $1

-- name: lock-pipeline
SELECT seq FROM etl.pipelines WHERE pipeline = $1 FOR UPDATE

-- name: traces
SELECT (SELECT count(*) FROM etl.manifests WHERE pipeline = $1 AND seq > $2)
     + (SELECT count(*) FROM etl.segment_use WHERE pipeline = $1 AND added_seq > $2)
     + (SELECT count(*) FROM etl.targets WHERE pipeline = $1 AND $2 = 0)

-- name: lease
SELECT holder::text, host, boot_id, pid_space, pid, pid_started, expires_at <= clock_timestamp(),
       extract(epoch FROM clock_timestamp() - renewed_at)::float8
FROM etl.leases WHERE pipeline = $1 AND lane = 'live'

-- name: take-lease
INSERT INTO etl.leases (pipeline, lane, holder, host, boot_id, pid_space, pid, pid_started, backend_pid, renewed_at, expires_at)
VALUES ($1, 'live', $2::uuid, $3, $4, $5, $6, $7, pg_backend_pid(), clock_timestamp(), clock_timestamp() + $8 * interval '1 second')
ON CONFLICT (pipeline, lane) DO UPDATE
SET holder = excluded.holder, host = excluded.host, boot_id = excluded.boot_id, pid_space = excluded.pid_space, pid = excluded.pid,
    pid_started = excluded.pid_started, backend_pid = excluded.backend_pid, renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
WHERE leases.expires_at <= clock_timestamp() OR leases.holder IN ($9::uuid, excluded.holder)

-- name: renew-lease
UPDATE etl.leases SET renewed_at = clock_timestamp(), expires_at = clock_timestamp() + $3 * interval '1 second'
WHERE pipeline = $1 AND lane = 'live' AND holder = $2::uuid

-- name: release-lease
DELETE FROM etl.leases WHERE pipeline = $1 AND lane = 'live' AND holder = $2::uuid

-- name: insert-pipeline
INSERT INTO etl.pipelines (pipeline, incarnation, fence, seq, last_batch) VALUES ($1, 1, 0, 0, -1) ON CONFLICT DO NOTHING

-- name: bump-fence
UPDATE etl.pipelines SET fence = fence + 1, file_path = nullif($2, '') WHERE pipeline = $1 RETURNING fence

-- name: terminate-sessions
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = $1 AND pid <> pg_backend_pid()

-- name: terminate-blocker
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE pid = ANY (pg_blocking_pids($1::int)) AND application_name = $2

-- name: manifests
SELECT seq, incarnation, batch, attempt::text, kind, parent_seq, parent_sha, plan_id, env, batch_time, position, counts,
       ranges_sha, live, checksum
FROM etl.manifests WHERE pipeline = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq DESC LIMIT $4

-- name: of-kind
SELECT seq FROM etl.manifests WHERE pipeline = $1 AND kind = $2 ORDER BY seq

-- name: insert-manifest
INSERT INTO etl.manifests (pipeline, seq, incarnation, batch, attempt, kind, parent_seq, parent_sha, plan_id, env,
       batch_time, position, counts, ranges_sha, live, checksum)
VALUES ($1, $2, $3, $4, $5::uuid, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)

-- name: forget-manifest
DELETE FROM etl.manifests WHERE pipeline = $1 AND seq = $2

-- name: advance
UPDATE etl.pipelines SET seq = $1, last_batch = $2, plan_id = $3, position = $4, position_sha = $5, manifest_sha = $6
WHERE pipeline = $7 AND incarnation = $8 AND fence = $9 AND seq = $10 AND coalesce(manifest_sha, '') = $11

-- name: confirm
SELECT count(*) FROM etl.manifests WHERE pipeline = $1 AND seq = $2 AND attempt = $3::uuid

-- name: plan
SELECT plan_id, canon_version, input_h, state_h, output_h, env_h, sql, canonical FROM etl.plans WHERE plan_id = $1

-- name: insert-plan
INSERT INTO etl.plans VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING

-- name: insert-ranges
INSERT INTO etl.ranges (pipeline, seq, place, source, split_id, from_off, to_off, rows, content_id)
SELECT $1, $2, r.place, r.source, r.split_id, r.from_off, r.to_off, r.rows, r.content_id
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  WITH ORDINALITY AS r(source, split_id, from_off, to_off, rows, content_id, place)

-- name: seq-of
SELECT coalesce(max(seq), 0) FROM etl.manifests WHERE pipeline = $1 AND batch = $2 AND kind = 'batch'

-- name: batch-of
SELECT batch FROM etl.manifests WHERE pipeline = $1 AND seq = $2

-- name: ranges
SELECT r.source, r.split_id, r.content_id, r.seq, m.batch, r.from_off, r.to_off, r.rows, coalesce(x.n, 0)
FROM etl.ranges r
JOIN etl.manifests m ON m.pipeline = r.pipeline AND m.seq = r.seq
LEFT JOIN (SELECT seq, source, split_id, count(*) AS n FROM etl.rejects WHERE pipeline = $1 GROUP BY seq, source, split_id) x
  ON x.seq = r.seq AND x.source = r.source AND x.split_id = r.split_id
LEFT JOIN (SELECT lower(a.source) AS source, max(a.seq) AS seq FROM etl.ranges a
           JOIN etl.manifests b ON b.pipeline = a.pipeline AND b.seq = a.seq
           WHERE a.pipeline = $1 AND b.kind = 'rebuild' GROUP BY lower(a.source)) anew ON anew.source = lower(r.source)
LEFT JOIN (SELECT lower(source) AS source, split_id, max(seq) AS seq FROM etl.ranges WHERE pipeline = $1 AND from_off = 0 GROUP BY lower(source), split_id) begun
  ON begun.source = lower(r.source) AND begun.split_id = r.split_id
WHERE r.pipeline = $1 AND r.seq >= coalesce(anew.seq, 0) AND r.seq >= coalesce(begun.seq, 0)
ORDER BY r.source COLLATE "C", r.seq, r.split_id COLLATE "C"

-- name: consumed
SELECT source, split_id, from_off, to_off, rows, content_id FROM etl.ranges WHERE pipeline = $1 AND seq = $2 ORDER BY place

-- name: insert-rejects
INSERT INTO etl.rejects (pipeline, seq, source, split_id, off, line, reason, raw)
SELECT $1, $2, * FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[])

-- name: insert-segments
INSERT INTO etl.segments (pipeline, segment_id, step_id, level, seq_lo, seq_hi, rows, bytes, parts, schema, sha256)
SELECT $1, s.id::uuid, s.step, s.level, s.lo, s.hi, s.rows, s.bytes, s.parts, s.schema, s.sha
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::text[])
  AS s(id, step, level, lo, hi, rows, bytes, parts, schema, sha)

-- name: use-segments
INSERT INTO etl.segment_use (pipeline, incarnation, segment_id, added_seq) SELECT $1, $2, unnest($3::text[])::uuid, $4

-- name: remove-segments
UPDATE etl.segment_use SET removed_seq = $1
WHERE pipeline = $2 AND incarnation = $3 AND removed_seq IS NULL AND segment_id = ANY ($4::text[]::uuid[])

-- name: remove-all-segments
UPDATE etl.segment_use SET removed_seq = $1 WHERE pipeline = $2 AND incarnation = $3 AND removed_seq IS NULL AND added_seq < $1

-- name: forget-uses
DELETE FROM etl.segment_use u
WHERE pipeline = $1 AND incarnation = $2 AND removed_seq IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM unnest($3::bigint[]) AS k(seq) WHERE k.seq >= u.added_seq AND k.seq < u.removed_seq)

-- name: collect-parts
DELETE FROM etl.segment_parts p USING etl.segments s
WHERE s.segment_id = p.segment_id AND s.pipeline = $1
  AND NOT EXISTS (SELECT 1 FROM etl.segment_use u WHERE u.pipeline = $1 AND u.segment_id = p.segment_id)
  AND NOT EXISTS (SELECT 1 FROM etl.jobs j WHERE p.segment_id::text = ANY (string_to_array(coalesce(j.staging, ''), ' ')))

-- name: collect-segments
DELETE FROM etl.segments s
WHERE pipeline = $1 AND NOT EXISTS (SELECT 1 FROM etl.segment_use u WHERE u.pipeline = $1 AND u.segment_id = s.segment_id)
  AND NOT EXISTS (SELECT 1 FROM etl.jobs j WHERE s.segment_id::text = ANY (string_to_array(coalesce(j.staging, ''), ' ')))

-- name: forget-checkpoints
DELETE FROM etl.checkpoints WHERE pipeline = $1 AND incarnation = $2

-- name: keep-checkpoints
INSERT INTO etl.checkpoints (pipeline, incarnation, seq, reason)
SELECT $1, $2, k.seq, k.reason FROM unnest($3::bigint[], $4::text[]) AS k(seq, reason)

-- name: points
SELECT seq, batch_time FROM etl.manifests
WHERE pipeline = $1 AND incarnation = $2
  AND (seq IN (SELECT seq FROM etl.checkpoints WHERE pipeline = $1 AND incarnation = $2)
       OR seq > coalesce((SELECT max(seq) FROM etl.checkpoints WHERE pipeline = $1 AND incarnation = $2), 0))
ORDER BY seq

-- name: segments
SELECT s.segment_id::text, step_id, level, seq_lo, seq_hi, rows, bytes, schema, sha256
FROM etl.segment_use u JOIN etl.segments s ON s.segment_id = u.segment_id
WHERE u.pipeline = $1 AND u.incarnation = $2 AND u.added_seq <= $3 AND (u.removed_seq IS NULL OR u.removed_seq > $3)
ORDER BY seq_lo, seq_hi, step_id COLLATE "C"

-- name: parts
SELECT part, data FROM etl.segment_parts WHERE segment_id = $1::uuid ORDER BY part

-- name: targets
SELECT schema_name, table_name, t.pipeline, sink, table_identity::text, key_cols, own_cols, coalesce(file_path, '')
FROM etl.targets t LEFT JOIN etl.pipelines p ON p.pipeline = t.pipeline

-- name: insert-target
INSERT INTO etl.targets VALUES ($1, $2, $3, $4, $5::text[], $6::text[], $7::uuid, $8)

-- name: forget-target
DELETE FROM etl.targets WHERE pipeline = $1 AND lower(schema_name) = lower($2) AND lower(table_name) = lower($3)

-- name: fit-target
UPDATE etl.targets SET sink = $4, key_cols = $5::text[], own_cols = $6::text[]
WHERE pipeline = $1 AND lower(schema_name) = lower($2) AND lower(table_name) = lower($3)

-- name: keys-of
SELECT c.conname, c.contype::text, array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C")
FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
WHERE c.conrelid = $1::bigint::oid AND c.contype IN ('p', 'u') GROUP BY c.conname, c.contype

-- name: relations
SELECT c.oid::bigint, c.relname, c.relkind::text, coalesce(obj_description(c.oid, 'pg_class'), '')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND lower(c.relname) = lower($2) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')

-- name: marked
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
WHERE strpos(d.description, $1) > 0 AND c.relkind = 'r'

-- name: columns
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       a.attgenerated <> '' OR a.attidentity = 'a', a.atthasdef OR a.attidentity <> ''
FROM pg_attribute a WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum

-- name: constraints
SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c
WHERE c.conrelid = $1::bigint::oid AND c.contype IN ('p', 'u', 'x')
  AND (c.contype = 'x' OR (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C") FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey))
       IS DISTINCT FROM (SELECT array_agg(k ORDER BY k COLLATE "C") FROM unnest($2::text[]) k))
ORDER BY c.conname

-- name: unique-indexes
SELECT count(*) FROM pg_index i
WHERE i.indrelid = $1::bigint::oid AND i.indisunique AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)
  AND (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL
       OR (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C") FROM pg_attribute a
           WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]))
          IS DISTINCT FROM (SELECT array_agg(k ORDER BY k COLLATE "C") FROM unnest($2::text[]) k))

-- name: key-index
SELECT count(*) FROM pg_index i
WHERE i.indrelid = $1::bigint::oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
  AND (i.indisprimary OR i.indnullsnotdistinct)
  AND (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C") FROM pg_attribute a
       WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]))
      = (SELECT array_agg(k ORDER BY k COLLATE "C") FROM unnest($2::text[]) k)

-- name: size
SELECT pg_relation_size($1::bigint::oid)

-- name: known
SELECT (SELECT count(*) FROM etl.pipelines WHERE pipeline = $1) + (SELECT count(*) FROM etl.manifests WHERE pipeline = $1)
         + (SELECT count(*) FROM etl.segment_use WHERE pipeline = $1) + (SELECT count(*) FROM etl.targets WHERE pipeline = $1),
       coalesce((SELECT max(last_batch) FROM etl.pipelines WHERE pipeline = $1), -1),
       (SELECT count(*) FROM etl.manifests WHERE pipeline = $1),
       (SELECT count(*) FROM (SELECT DISTINCT source, split_id FROM etl.ranges WHERE pipeline = $1) r),
       (SELECT count(*) FROM etl.rejects WHERE pipeline = $1),
       (SELECT coalesce(sum(bytes), 0)::bigint FROM etl.segments WHERE pipeline = $1)

-- name: owned
SELECT schema_name, table_name, sink, table_identity::text, taken_over, key_cols, own_cols FROM etl.targets WHERE pipeline = $1 ORDER BY sink COLLATE "C"

-- name: other-lanes
SELECT count(*) FROM etl.leases WHERE pipeline = $1 AND lane <> 'live' AND expires_at > clock_timestamp()

-- name: of-pipelines
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = 'etl' AND c.relkind = 'r' AND a.attname = 'pipeline' AND NOT a.attisdropped ORDER BY c.relname

-- name: forget-parts
DELETE FROM etl.segment_parts WHERE segment_id IN (SELECT segment_id FROM etl.segments WHERE pipeline = $1)

-- name: forget-plans
DELETE FROM etl.plans
WHERE plan_id IN (SELECT plan_id FROM etl.manifests WHERE pipeline = $1)
  AND plan_id NOT IN (SELECT plan_id FROM etl.manifests WHERE pipeline <> $1)

-- name: reseal-manifests
UPDATE etl.manifests m SET parent_sha = n.parent, checksum = n.sum
FROM unnest($2::bigint[], $3::text[], $4::text[]) AS n(seq, parent, sum)
WHERE m.pipeline = $1 AND m.seq = n.seq

-- name: reseal-pipeline
UPDATE etl.pipelines p SET fence = fence + 1, file_path = nullif($2, ''),
       manifest_sha = (SELECT checksum FROM etl.manifests m WHERE m.pipeline = $1 AND m.seq = p.seq)
WHERE pipeline = $1

-- name: job
SELECT base_seq, spec, coalesce(staging, '') FROM etl.jobs WHERE pipeline = $1 AND kind = $2

-- name: jobs
SELECT kind, base_seq, spec FROM etl.jobs WHERE pipeline = $1 ORDER BY kind COLLATE "C"

-- name: job-segments
SELECT segment_id::text, step_id, level, seq_lo, seq_hi, rows, bytes, schema, sha256
FROM etl.segments WHERE pipeline = $1 AND segment_id::text = ANY ($2::text[]) ORDER BY step_id COLLATE "C"

-- name: insert-job
INSERT INTO etl.jobs (id, pipeline, lane, kind, base_seq, spec, staging, status) VALUES (gen_random_uuid(), $1, 'build', $2, $3, $4, $5, 'saved')

-- name: forget-job-parts
DELETE FROM etl.segment_parts WHERE segment_id IN
  (SELECT unnest(string_to_array(nullif(staging, ''), ' '))::uuid FROM etl.jobs WHERE pipeline = $1 AND kind = $2)

-- name: forget-job-segments
DELETE FROM etl.segments WHERE segment_id IN
  (SELECT unnest(string_to_array(nullif(staging, ''), ' '))::uuid FROM etl.jobs WHERE pipeline = $1 AND kind = $2)

-- name: forget-job
DELETE FROM etl.jobs WHERE pipeline = $1 AND kind = $2
