-- The schema that keeps the progress of all pipelines of a database file. {db} is the name the file
-- is attached under; views say no database, so that they work under any.
--
-- Only meta, pipelines and leases are updated in place and have a primary key. An indexed table never
-- gives space back, so the uniqueness of the others is checked by the commit that writes them.

CREATE SCHEMA {db}.etl;

CREATE TABLE {db}.etl.meta (
  destination_uuid UUID    PRIMARY KEY,
  schema_version   INTEGER NOT NULL,
  location_hint    VARCHAR NOT NULL      -- absolute path it was last written under; shows copies
);

CREATE TABLE {db}.etl.pipelines (
  pipeline     VARCHAR PRIMARY KEY,
  incarnation  BIGINT  NOT NULL,
  fence        BIGINT  NOT NULL,         -- of the newest run; a commit under an older one fails
  seq          BIGINT  NOT NULL,         -- of the newest change; 0: none yet
  last_batch   BIGINT  NOT NULL,         -- -1: none yet
  plan_id      VARCHAR,
  position     VARCHAR,                  -- JSON, as in the manifest
  position_sha VARCHAR,
  manifest_sha VARCHAR,
  file_path    VARCHAR
);

CREATE TABLE {db}.etl.leases (
  pipeline    VARCHAR,
  lane        VARCHAR,                   -- live; a file has only this one
  holder      UUID        NOT NULL,
  host        VARCHAR     NOT NULL,
  boot_id     VARCHAR     NOT NULL,
  pid         BIGINT      NOT NULL,
  backend_pid BIGINT,                    -- servers only
  renewed_at  TIMESTAMPTZ NOT NULL,
  expires_at  TIMESTAMPTZ,               -- NULL: the lock on the file is the lease
  PRIMARY KEY (pipeline, lane)
);

CREATE TABLE {db}.etl.targets (
  schema_name    VARCHAR   NOT NULL,
  table_name     VARCHAR   NOT NULL,
  pipeline       VARCHAR   NOT NULL,
  sink           VARCHAR   NOT NULL,
  key_cols       VARCHAR[] NOT NULL,
  own_cols       VARCHAR[] NOT NULL,
  table_identity UUID      NOT NULL,     -- is in the table's comment too; a table that was replaced has lost it
  taken_over     BOOLEAN   NOT NULL      -- it was there before the pipeline, which never drops it
);

CREATE TABLE {db}.etl.manifests (
  pipeline     VARCHAR     NOT NULL,
  seq          BIGINT      NOT NULL,
  incarnation  BIGINT      NOT NULL,
  batch        BIGINT      NOT NULL,
  attempt      UUID        NOT NULL,
  kind         VARCHAR     NOT NULL,
  parent_seq   BIGINT      NOT NULL,
  parent_sha   VARCHAR     NOT NULL,
  plan_id      VARCHAR     NOT NULL,
  env          VARCHAR     NOT NULL,     -- JSON
  batch_time   TIMESTAMPTZ NOT NULL,
  position     VARCHAR     NOT NULL,     -- JSON: per source
  watermarks   VARCHAR,                  -- JSON: per source
  counts       VARCHAR     NOT NULL,     -- JSON: per source and per sink, with the sink's digest
  ranges_sha   VARCHAR     NOT NULL,
  live         VARCHAR     NOT NULL,     -- JSON: number and sum of the segments live after it
  checksum     VARCHAR     NOT NULL
);

CREATE TABLE {db}.etl.ranges (
  pipeline   VARCHAR NOT NULL,
  seq        BIGINT  NOT NULL,
  source     VARCHAR NOT NULL,
  split_id   VARCHAR NOT NULL,
  from_off   BIGINT  NOT NULL,
  to_off     BIGINT  NOT NULL,
  rows       BIGINT  NOT NULL,
  content_id VARCHAR NOT NULL
);

CREATE TABLE {db}.etl.segments (
  segment_id UUID    NOT NULL,
  pipeline   VARCHAR NOT NULL,
  step_id    VARCHAR NOT NULL,
  level      INTEGER NOT NULL,
  seq_lo     BIGINT  NOT NULL,
  seq_hi     BIGINT  NOT NULL,
  hash_lo    UBIGINT,                    -- NULL: all keys
  hash_hi    UBIGINT,
  rows       BIGINT  NOT NULL,
  bytes      BIGINT  NOT NULL,
  parts      INTEGER NOT NULL,
  schema     VARCHAR NOT NULL,
  sha256     VARCHAR NOT NULL
);

CREATE TABLE {db}.etl.segment_parts (
  segment_id UUID    NOT NULL,
  part       INTEGER NOT NULL,           -- from 0
  data       BLOB    NOT NULL
);

CREATE TABLE {db}.etl.segment_use (
  pipeline    VARCHAR NOT NULL,
  incarnation BIGINT  NOT NULL,
  segment_id  UUID    NOT NULL,
  added_seq   BIGINT  NOT NULL,
  removed_seq BIGINT                     -- NULL: live at the head
);

CREATE TABLE {db}.etl.plans (
  plan_id       VARCHAR NOT NULL,
  canon_version INTEGER NOT NULL,
  input_h       VARCHAR NOT NULL,
  state_h       VARCHAR NOT NULL,
  output_h      VARCHAR NOT NULL,
  env_h         VARCHAR NOT NULL,
  sql           VARCHAR NOT NULL,
  canonical     VARCHAR NOT NULL
);

CREATE TABLE {db}.etl.savepoints (
  pipeline    VARCHAR NOT NULL,
  name        VARCHAR NOT NULL,
  incarnation BIGINT  NOT NULL,
  seq         BIGINT  NOT NULL
);

CREATE TABLE {db}.etl.checkpoints (
  pipeline    VARCHAR NOT NULL,
  incarnation BIGINT  NOT NULL,
  seq         BIGINT  NOT NULL,
  reason      VARCHAR NOT NULL
);

CREATE TABLE {db}.etl.rejects (
  pipeline VARCHAR NOT NULL,
  seq      BIGINT  NOT NULL,
  source   VARCHAR NOT NULL,
  split_id VARCHAR NOT NULL,
  off      BIGINT  NOT NULL,
  line     BIGINT,
  reason   VARCHAR NOT NULL,
  raw      VARCHAR
);

CREATE TABLE {db}.etl.jobs (
  id       UUID    NOT NULL,
  pipeline VARCHAR NOT NULL,
  lane     VARCHAR NOT NULL,
  kind     VARCHAR NOT NULL,
  base_seq BIGINT  NOT NULL,
  spec     VARCHAR NOT NULL,             -- JSON
  cursor   VARCHAR,                      -- JSON
  staging  VARCHAR,
  status   VARCHAR NOT NULL
);

CREATE VIEW {db}.etl.status AS
SELECT p.pipeline, p.last_batch AS batch, m.batch_time AS committed_at, p.seq, p.incarnation, p.plan_id,
       l.host AS held_by_host, l.pid AS held_by_pid, l.renewed_at AS held_since
FROM etl.pipelines p
LEFT JOIN etl.manifests m ON m.pipeline = p.pipeline AND m.seq = p.seq
LEFT JOIN etl.leases l ON l.pipeline = p.pipeline AND l.lane = 'live';

CREATE VIEW {db}.etl.history AS
SELECT m.pipeline, m.seq, m.incarnation, m.batch, m.kind, m.batch_time AS committed_at,
       coalesce(r.splits, 0) AS splits_read, coalesce(r.rows, 0) AS rows_read, m.counts, m.plan_id, m.env
FROM etl.manifests m
LEFT JOIN (SELECT pipeline, seq, count(DISTINCT (source, split_id)) AS splits, sum(rows)::BIGINT AS rows
           FROM etl.ranges GROUP BY ALL) r ON r.pipeline = m.pipeline AND r.seq = m.seq;
