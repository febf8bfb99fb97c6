package main

import (
	"context"
	"crypto/rand"
	dbsql "database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lockstep/engine/duck"
)

// exportFile is a file that appears whole under its name, or not at all.
type exportFile struct {
	path   string
	format string
	force  bool
}

func newExport(path string, force bool) (*exportFile, error) {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	switch format {
	case "csv", "json", "parquet":
	case "jsonl", "ndjson":
		format = "json"
	default:
		return nil, &usageError{fmt.Sprintf("--export %s: the format cannot be told from its suffix", path), "there are .csv, .json and .parquet"}
	}
	e := &exportFile{path: path, format: format, force: force}
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, &usageError{"--export: " + path + " is a folder", "name a file in it"}
	case err == nil && !force:
		return nil, e.exists()
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return nil, &usageError{"--export: " + filepath.Dir(path) + ": no such folder", ""}
	}
	return e, nil
}

func (e *exportFile) exists() error {
	return &usageError{"--export: " + e.path + " exists already", "name another file, or let it be replaced with --force"}
}

// write exports what a query over the rejects gives, and returns how many rows that is.
func (e *exportFile) write(ctx context.Context, s *session, query string) (int64, error) {
	rows, err := s.exportedRejects(ctx, query)
	if err != nil {
		return 0, err
	}
	// DuckDB may write to its own folder only.
	made := filepath.Join(s.temp.path, "export")
	options := map[string]string{"csv": "FORMAT csv, HEADER true", "json": "FORMAT json", "parquet": "FORMAT parquet"}[e.format]
	if err := s.duck.Exec(ctx, "COPY (FROM "+exportTable+" ORDER BY seq, source, file, row) TO "+duck.Literal(made)+" ("+options+")"); err != nil {
		return 0, fmt.Errorf("write the export: %s", message(err))
	}
	return rows, e.publish(made)
}

const exportTable = "temp._export"

// exportedRejects makes the table that is exported: the files as the pipeline file writes them.
func (s *session) exportedRejects(ctx context.Context, query string) (int64, error) {
	err := s.duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE _files (source VARCHAR, split_id VARCHAR, file VARCHAR)")
	if err != nil {
		return 0, err
	}
	var splits [][2]string
	err = s.duck.Each(ctx, "SELECT DISTINCT source, split_id FROM ("+query+")", nil, func(rows *dbsql.Rows) error {
		var p [2]string
		err := rows.Scan(&p[0], &p[1])
		splits = append(splits, p)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, p := range splits {
		if err := s.duck.Exec(ctx, "INSERT INTO _files VALUES (?, ?, ?)", p[0], p[1], s.shownSplit(p[0], p[1])); err != nil {
			return 0, err
		}
	}
	err = s.duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE _export AS SELECT q.batch, q.seq, q.source, f.file, q.line, q.off + 1 AS row, q.reason, q.raw FROM ("+query+
		") q JOIN _files f ON f.source = q.source AND f.split_id = q.split_id")
	if err != nil {
		return 0, err
	}
	var n int64
	err = s.duck.QueryRow(ctx, "SELECT count(*) FROM "+exportTable, nil, &n)
	return n, err
}

// publish copies a file beside its last place and lets it take the name in one step.
func (e *exportFile) publish(made string) (err error) {
	dir, name := filepath.Split(e.path)
	var random [6]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+name+"."+hex.EncodeToString(random[:])+".tmp")
	defer func() {
		if err != nil {
			_ = os.Remove(temp) // err is what matters
			var usage *usageError
			if !errors.As(err, &usage) {
				err = fmt.Errorf("write %s: %s", e.path, reasonOf(err))
			}
		}
	}()
	if err := copyTo(temp, made); err != nil {
		return err
	}
	if e.force {
		return os.Rename(temp, e.path)
	}
	// A link takes no name that somebody else took meanwhile, as a rename would.
	if err = os.Link(temp, e.path); err == nil {
		return os.Remove(temp)
	}
	if _, statErr := os.Lstat(e.path); errors.Is(err, fs.ErrExist) || statErr == nil {
		return e.exists()
	}
	return os.Rename(temp, e.path) // on a file system without links
}

func copyTo(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
