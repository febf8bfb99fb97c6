-- The schema that keeps the progress of all pipelines of a Postgres database.
--
-- What a checksum covers is text, byte for byte as it was written: jsonb would write it anew. There are
-- no foreign keys: what is damaged is found by checksums, and must be able to be looked at.

CREATE SCHEMA etl;

CREATE TABLE etl.meta (
  destination_uuid uuid    PRIMARY KEY,
  schema_version   integer NOT NULL,
  location_hint    text    NOT NULL
);

CREATE TABLE etl.pipelines (
  pipeline     text   PRIMARY KEY,
  incarnation  bigint NOT NULL,
  fence        bigint NOT NULL,           -- of the newest run; a commit under an older one fails
  seq          bigint NOT NULL,           -- of the newest change; 0: none yet
  last_batch   bigint NOT NULL,           -- -1: none yet
  plan_id      text,
  position     text,                      -- JSON, as in the manifest
  position_sha text,
  manifest_sha text,
  file_path    text
);

CREATE TABLE etl.leases (
  pipeline    text        NOT NULL,
  lane        text        NOT NULL,       -- live
  holder      uuid        NOT NULL,
  host        text        NOT NULL,
  boot_id     text        NOT NULL,
  pid_space   text        NOT NULL,       -- a pid means something only in its own namespace
  pid         bigint      NOT NULL,
  pid_started bigint      NOT NULL,       -- in clock ticks since the boot: pids are used again
  backend_pid bigint      NOT NULL,       -- that took it
  renewed_at  timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (pipeline, lane)
);

CREATE TABLE etl.targets (
  schema_name    text   NOT NULL,
  table_name     text   NOT NULL,
  pipeline       text   NOT NULL,
  sink           text   NOT NULL,
  key_cols       text[] NOT NULL,
  own_cols       text[] NOT NULL,
  table_identity uuid   NOT NULL,         -- is in the table's comment too; a table that was replaced has lost it
  taken_over     boolean NOT NULL,        -- it was there before the pipeline, which never drops it
  PRIMARY KEY (schema_name, table_name)
);

CREATE TABLE etl.manifests (
  pipeline     text        NOT NULL,
  seq          bigint      NOT NULL,
  incarnation  bigint      NOT NULL,
  batch        bigint      NOT NULL,
  attempt      uuid        NOT NULL,
  kind         text        NOT NULL,
  parent_seq   bigint      NOT NULL,
  parent_sha   text        NOT NULL,
  plan_id      text        NOT NULL,
  env          text        NOT NULL,      -- JSON
  batch_time   timestamptz NOT NULL,
  position     text        NOT NULL,      -- JSON: per source
  watermarks   text,                      -- JSON: per source
  counts       text        NOT NULL,      -- JSON: per source and per sink, with the sink's digest
  ranges_sha   text        NOT NULL,
  live         text        NOT NULL,      -- JSON: number and sum of the segments live after it
  checksum     text        NOT NULL,
  PRIMARY KEY (pipeline, seq)
);

CREATE TABLE etl.ranges (
  pipeline   text    NOT NULL,
  seq        bigint  NOT NULL,
  place      integer NOT NULL,            -- the order in which they were read, from 1
  source     text    NOT NULL,
  split_id   text    NOT NULL,
  from_off   bigint  NOT NULL,
  to_off     bigint  NOT NULL,
  rows       bigint  NOT NULL,
  content_id text    NOT NULL,
  PRIMARY KEY (pipeline, seq, place)
);

CREATE TABLE etl.segments (
  segment_id uuid    PRIMARY KEY,
  pipeline   text    NOT NULL,
  step_id    text    NOT NULL,
  level      integer NOT NULL,
  seq_lo     bigint  NOT NULL,
  seq_hi     bigint  NOT NULL,
  hash_lo    numeric(20),                 -- NULL: all keys
  hash_hi    numeric(20),
  rows       bigint  NOT NULL,
  bytes      bigint  NOT NULL,
  parts      integer NOT NULL,
  schema     text    NOT NULL,
  sha256     text    NOT NULL
);

CREATE TABLE etl.segment_parts (
  segment_id uuid    NOT NULL,
  part       integer NOT NULL,            -- from 0
  data       bytea   NOT NULL,
  PRIMARY KEY (segment_id, part)
);
ALTER TABLE etl.segment_parts ALTER COLUMN data SET STORAGE EXTERNAL; -- it is compressed already

CREATE TABLE etl.segment_use (
  pipeline    text   NOT NULL,
  incarnation bigint NOT NULL,
  segment_id  uuid   NOT NULL,
  added_seq   bigint NOT NULL,
  removed_seq bigint,                     -- NULL: live at the head
  PRIMARY KEY (pipeline, incarnation, segment_id)
);

CREATE TABLE etl.plans (
  plan_id       text    PRIMARY KEY,
  canon_version integer NOT NULL,
  input_h       text    NOT NULL,
  state_h       text    NOT NULL,
  output_h      text    NOT NULL,
  env_h         text    NOT NULL,
  sql           text    NOT NULL,
  canonical     text    NOT NULL
);

CREATE TABLE etl.savepoints (
  pipeline    text   NOT NULL,
  name        text   NOT NULL,
  incarnation bigint NOT NULL,
  seq         bigint NOT NULL,
  PRIMARY KEY (pipeline, name)
);

CREATE TABLE etl.checkpoints (
  pipeline    text   NOT NULL,
  incarnation bigint NOT NULL,
  seq         bigint NOT NULL,
  reason      text   NOT NULL,
  PRIMARY KEY (pipeline, incarnation, seq)
);

CREATE TABLE etl.rejects (
  pipeline text   NOT NULL,
  seq      bigint NOT NULL,
  source   text   NOT NULL,
  split_id text   NOT NULL,
  off      bigint NOT NULL,
  line     bigint,
  reason   text   NOT NULL,
  raw      text
);
CREATE INDEX rejects_of ON etl.rejects (pipeline, seq);

CREATE TABLE etl.jobs (
  id       uuid   PRIMARY KEY,
  pipeline text   NOT NULL,
  lane     text   NOT NULL,
  kind     text   NOT NULL,
  base_seq bigint NOT NULL,
  spec     text   NOT NULL,               -- JSON
  cursor   text,                          -- JSON
  staging  text,
  status   text   NOT NULL
);

CREATE VIEW etl.status AS
SELECT p.pipeline, p.last_batch AS batch, m.batch_time AS committed_at, p.seq, p.incarnation, p.plan_id,
       l.host AS held_by_host, l.pid AS held_by_pid, l.renewed_at AS held_since
FROM etl.pipelines p
LEFT JOIN etl.manifests m ON m.pipeline = p.pipeline AND m.seq = p.seq
LEFT JOIN etl.leases l ON l.pipeline = p.pipeline AND l.lane = 'live' AND l.expires_at > now();

CREATE VIEW etl.history AS
SELECT m.pipeline, m.seq, m.incarnation, m.batch, m.kind, m.batch_time AS committed_at,
       coalesce(r.splits, 0) AS splits_read, coalesce(r.rows, 0) AS rows_read, m.counts, m.plan_id, m.env
FROM etl.manifests m
LEFT JOIN (SELECT pipeline, seq, count(DISTINCT (source, split_id)) AS splits, sum(rows)::bigint AS rows
           FROM etl.ranges GROUP BY pipeline, seq) r ON r.pipeline = m.pipeline AND r.seq = m.seq;
