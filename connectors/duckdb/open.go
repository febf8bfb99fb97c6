package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockstep/connectors"
	"lockstep/connectors/targets"
	"lockstep/engine/duck"
)

// schemaVersion is the version of schema.sql.
const schemaVersion = 2

// Access says how a file is opened.
type Access struct {
	ReadOnly bool
	HidePath bool   // the path is nobody's business, so it is not stored; then a copy of the file is not noticed
	File     string // the pipeline file, absolute; noted by Take
	Adopt    bool   // a copy of another file goes on by itself from now on
}

// Open attaches a DuckDB file to the engine under the author's name for it. To write, the file and
// the schema etl are created when they are missing. The engine must be allowed to use its folder.
func Open(ctx context.Context, eng *duck.Engine, path, alias string, access Access) (*Destination, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, &connectors.UnavailableError{What: path, Err: err}
	}
	d := &Destination{eng: eng, path: abs, alias: alias, readOnly: access.ReadOnly, hidePath: access.HidePath, file: access.File, adopt: access.Adopt, settled: map[string]bool{}, inPlace: map[string]bool{}}
	if err := d.attach(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Destination) attach(ctx context.Context) error {
	if err := d.findFile(); err != nil {
		return err
	}
	if err := d.eng.Attach(ctx, d.path, d.alias, d.readOnly); err != nil {
		return d.openError(err)
	}
	if err := d.prepare(ctx); err != nil {
		return errors.Join(err, d.Close())
	}
	return nil
}

// Rest detaches the file. Temp tables stay: they are the engine's.
func (d *Destination) Rest(ctx context.Context) error {
	clear(d.settled)
	return d.failed("give it back", d.eng.Detach(context.WithoutCancel(ctx), d.alias))
}

// Wake attaches the file again. It does not make a new one.
func (d *Destination) Wake(ctx context.Context) error {
	if _, err := os.Stat(d.path); errors.Is(err, fs.ErrNotExist) {
		return &connectors.UnavailableError{What: d.path, Err: errors.New("it was removed while its pipeline was followed"),
			Hint: "put it back; to begin a new one, start the run again"}
	}
	return d.attach(ctx)
}

// findFile gives plain words to what DuckDB would call an IO error.
func (d *Destination) findFile() error {
	unavailable := func(reason, hint string) error {
		return &connectors.UnavailableError{What: d.path, Err: errors.New(reason), Hint: hint}
	}
	if info, err := os.Stat(filepath.Dir(d.path)); errors.Is(err, fs.ErrNotExist) {
		return unavailable("its folder does not exist", "create the folder, or correct the path in ATTACH; paths are relative to the pipeline file")
	} else if err == nil && !info.IsDir() {
		return unavailable("what should be its folder is a file", "correct the path in ATTACH")
	}
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.readOnly:
		return unavailable("it does not exist yet", "`etl run` creates it")
	case err == nil && info.IsDir():
		return unavailable("it is a folder, not a database file", "correct the path in ATTACH")
	}
	return nil
}

// openError tells apart, by DuckDB's words, who has to act.
func (d *Destination) openError(err error) error {
	var open *duck.OpenError
	if errors.As(err, &open) && open.Held {
		return &connectors.HeldError{What: d.path, By: program(open.PID)}
	}
	text := err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	unavailable := func(reason, hint string) error {
		return &connectors.UnavailableError{What: d.path, Err: errors.New(reason), Hint: hint}
	}
	switch {
	case has("not a valid DuckDB database file"):
		return unavailable("it is not a DuckDB database", "correct the path in ATTACH, or move the file away")
	case has("Trying to read a database file with version number"):
		return unavailable("it was written by another version of DuckDB that this one cannot read", "use a newer version of etl")
	case has("Corrupt database file"):
		return unavailable("the file is damaged: DuckDB's own checksums do not fit", "put it back from a backup")
	case has("Permission denied"):
		return unavailable("the file or its folder may not be read and written by this user", "")
	case errors.Is(err, fs.ErrPermission):
		return unavailable("its folder may not be read by this user", "")
	}
	return d.failed("open it", errors.Unwrap(err))
}

// program describes a process, with its name where the system tells.
func program(pid string) string {
	if pid == "" {
		return ""
	}
	if pid == fmt.Sprint(os.Getpid()) {
		return "this process"
	}
	comm, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	if err != nil {
		return "pid " + pid
	}
	return fmt.Sprintf("pid %s (%s)", pid, strings.TrimSpace(string(comm)))
}

// prepare creates the schema etl or checks the one that is there.
func (d *Destination) prepare(ctx context.Context) error {
	var ours, tables int
	if err := d.eng.QueryRow(ctx, d.sql("has-schema"), []any{d.alias}, &ours, &tables); err != nil {
		return d.failed("read the schema etl", err)
	}
	switch {
	case ours == 1:
		return d.checkMeta(ctx)
	case tables > 0:
		return &connectors.TargetError{Table: "etl.meta", Reason: d.path + " has a schema named etl that is not ours",
			Hint: "rename that schema, or use another database file"}
	case d.readOnly:
		d.empty = true
		return nil
	}
	return d.inTx(ctx, "create the schema etl", func() error {
		if err := d.eng.Exec(ctx, d.inDatabase(schemaSQL)); err != nil {
			return d.failed("create the schema etl", err)
		}
		return d.failed("create the schema etl", d.eng.Exec(ctx, d.sql("insert-meta"), schemaVersion, d.hint()))
	})
}

func (d *Destination) checkMeta(ctx context.Context) error {
	var version int
	var hint string
	if err := d.eng.QueryRow(ctx, d.sql("meta"), nil, &version, &hint); err != nil {
		return &connectors.DamagedError{What: "table etl.meta of " + d.path, Reason: "its one row cannot be read"}
	}
	if err := targets.Schema(d.path, version, schemaVersion); err != nil {
		return err
	}
	switch {
	case hint == d.hint():
		return nil
	case d.readOnly:
		if there, _ := d.original(hint); there && !d.hidePath && hint != "" {
			d.refused = d.isCopy(hint)
		}
		return nil
	case d.hidePath || hint == "":
		return d.moveHint(ctx)
	}
	return d.checkCopy(ctx, hint)
}

// hint is what is stored of the path.
func (d *Destination) hint() string {
	if d.hidePath {
		return ""
	}
	return d.path
}

func (d *Destination) moveHint(ctx context.Context) error {
	return d.inTx(ctx, "note the new path", func() error {
		return d.failed("note the new path", d.eng.Exec(ctx, d.sql("move-hint"), d.hint()))
	})
}

// checkCopy is called when the file was last written under another path. A moved and a copied file
// look the same from inside. While a file is still at the old path, this one counts as a copy:
// continuing both would make two histories of one pipeline. Otherwise it was moved. A copy taken to
// another machine, where the old path means nothing, is not noticed.
func (d *Destination) checkCopy(ctx context.Context, hint string) error {
	switch original, linked := d.original(hint); {
	case linked:
		return nil
	case original && d.adopt:
		d.copyOf = hint
		return d.adoptCopy(ctx)
	case original:
		return d.isCopy(hint)
	}
	return d.moveHint(ctx)
}

// original tells whether another file is where this one was written last, or this one, reached by a link.
func (d *Destination) original(hint string) (there, linked bool) {
	here, err := os.Stat(d.path)
	was, wasErr := os.Stat(hint)
	if err != nil || wasErr != nil {
		return false, false
	}
	linked = os.SameFile(here, was)
	return !linked, linked
}

func (d *Destination) isCopy(hint string) error {
	return &connectors.TargetError{Table: "etl.meta", Reason: fmt.Sprintf("%s is a copy of %s, and both exist", d.path, hint),
		Hint: "run the pipeline on one of them. If this one shall go on by itself, say so:\n  etl adopt FILE"}
}

// Refused is why this file, opened only to read, would not be opened to write; nil when it would.
func (d *Destination) Refused() error { return d.refused }

// adoptCopy makes a copy a database of its own. The pipeline files of the other one are not its own.
func (d *Destination) adoptCopy(ctx context.Context) error {
	const doing = "adopt the copy"
	return d.inTx(ctx, doing, func() error {
		err := d.eng.Exec(ctx, d.sql("adopt-copy"), d.hint())
		if err == nil {
			err = d.eng.Exec(ctx, d.sql("forget-files"))
		}
		return d.failed(doing, err)
	})
}

// CopyOf is the file that this one was a copy of until Open adopted it; "" when it was none.
func (d *Destination) CopyOf() string { return d.copyOf }
