package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

const (
	// schemaVersion is the version of schema.sql.
	schemaVersion = 2
	// oldest is the first major version with MERGE and UNIQUE NULLS NOT DISTINCT.
	oldest = 15
	// patience is how long a server that went away, or a lock of somebody else, is waited for.
	patience = 30 * time.Second
)

// Access says how a database is opened.
type Access struct {
	Name     string // how messages call the database; it must show no secret
	ReadOnly bool
	File     string // the pipeline file, absolute; noted by Take
}

// Open connects to the database of a DSN, in the form of a URL or of key=value pairs; what it leaves
// out comes from the PG… variables and files, as with psql. To write, the schema etl is created when it
// is missing. The engine holds the staged rows.
func Open(ctx context.Context, eng *duck.Engine, dsn string, access Access) (*Destination, error) {
	config, err := parseDSN(dsn)
	if err != nil {
		return nil, &connectors.UnavailableError{What: access.Name, Err: err,
			Hint: "write it as postgres://user:password@host:5432/database or as host=… dbname=… user=…"}
	}
	d := &Destination{eng: eng, config: config, name: access.Name, readOnly: access.ReadOnly, file: access.File, settled: map[string]bool{}, replaced: map[string]string{}}
	d.beat = &heartbeat{d: d}
	// A server that is not there at the start is said at once; one that goes away later is waited for.
	if err := d.prepare(ctx); err != nil {
		_ = d.Close()
		return nil, err
	}
	d.patience = patience
	return d, nil
}

// parseDSN gives no reason: pgx quotes what it could not read.
func parseDSN(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("its connection string cannot be read")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no prepared statement, and one round trip
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	return config, nil
}

// prepare makes sure that the schema etl is there, ours, and of a version that is known here.
func (d *Destination) prepare(ctx context.Context) error {
	var meta, tables int
	err := d.read(ctx, "look at the schema etl", func(tx *tx) error {
		if err := tx.row(ctx, sql("has-schema"), nil, &meta, &tables); err != nil || meta == 0 {
			return err
		}
		return d.checkVersion(ctx, tx)
	})
	switch {
	case err != nil || meta > 0:
		return err
	case tables > 0:
		return &connectors.TargetError{Table: "etl.meta", Reason: d.name + " has a schema named etl that is not ours",
			Hint: "rename that schema, or use another database"}
	case d.readOnly:
		d.empty = true
		return nil
	}
	return d.createSchema(ctx)
}

// createSchema is raced by the first runs of other pipelines: one makes it, the others find it.
func (d *Destination) createSchema(ctx context.Context) error {
	const doing = "create the schema etl"
	return d.inTx(ctx, doing, func(tx *tx) error {
		var meta, tables int
		err := tx.exec(ctx, sql("lock-schema"))
		if err == nil {
			err = tx.row(ctx, sql("has-schema"), nil, &meta, &tables)
		}
		if err != nil || meta > 0 {
			return err
		}
		if err := tx.script(ctx, schemaSQL); err != nil {
			return err
		}
		return tx.exec(ctx, sql("insert-meta"), schemaVersion)
	})
}

func (d *Destination) checkVersion(ctx context.Context, tx *tx) error {
	var version int
	err := tx.row(ctx, sql("meta"), nil, &version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return &connectors.DamagedError{What: "table etl.meta of " + d.name, Reason: "its one row is gone"}
	case err != nil:
		return err
	}
	return targets.Schema(d.name, version, schemaVersion)
}
