package files

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"lockstep/connectors"
)

// scan is one reading of ranges. It implements connectors.Scan.
type scan struct {
	s      *Source
	ranges []connectors.Range
	files  []file // as they looked when the reading began, one per range
	parts  []part
	sheets []sheet
	widths map[string]int // columns of CSV files, by id
	hasher *hasher

	suspects []suspect
	verdicts map[string]verdict // by id
	rejects  rejects
}

// Read checks that the files hold the declared columns, starts hashing those that are read for the
// first time, and returns the relation. Rows come in the order of the ranges, except that files
// with other columns than the ones before are read after those.
func (s *Source) Read(ctx context.Context, ranges []connectors.Range) (connectors.Scan, error) {
	if err := s.intact(ranges); err != nil {
		return nil, err
	}
	sc := &scan{s: s, ranges: ranges, verdicts: map[string]verdict{}, rejects: rejects{s: s}}
	var unhashed []file
	for _, r := range ranges {
		f, err := s.pattern.stat(r.Split)
		if err != nil {
			return nil, s.located(err)
		}
		if f != nil {
			if err := s.inside(*f); err != nil {
				return nil, err
			}
		}
		hash, err := s.same(r, f)
		if err != nil {
			return nil, err
		}
		if hash || s.settings.format != formatParquet {
			unhashed = append(unhashed, *f)
		}
		sc.files = append(sc.files, *f)
	}
	var err error
	switch s.settings.format {
	case formatParquet:
		if sc.parts, err = s.partsOf(ctx, sc.files, ranges); err == nil {
			err = sc.checkParquet(ctx)
		}
	case formatCSV:
		sc.sheets, err = s.sheetsOf(sc.files)
	}
	if err != nil {
		_ = sc.rejects.drop(ctx) // err is what matters
		return nil, err
	}
	sc.widths = make(map[string]int, len(sc.files))
	for _, sh := range sc.sheets {
		for _, f := range sh.files {
			sc.widths[f.id] = len(sh.names)
		}
	}
	sc.hasher = startHasher(ctx, unhashed, s.settings.rowCounter(ctx), s.Watch)
	return sc, nil
}

// same compares a file with what its range says of it, and tells whether its bytes must be hashed.
func (s *Source) same(r connectors.Range, f *file) (hash bool, err error) {
	known := identityOf(r.Next.Content).hash != ""
	switch {
	case f == nil && known:
		what := "its rows are needed"
		if r.From > 0 {
			what = fmt.Sprintf("its rows from %d on are needed", r.From+1)
		}
		err := s.inputError(r.Split, "is gone, but "+what, "put the file back; or go on without it:\n  "+s.taking(r.Split))
		err.Seq = r.Next.Seq
		return false, err
	case f == nil:
		return false, s.dataError(s.pattern.abs(r.Split), "is gone since it was planned; nothing was committed", "run again")
	case f.size == r.Next.Size && f.mtime == r.Next.ModTime:
		return !known, nil
	case !known:
		return false, s.writing(f.path)
	case f.size != r.Next.Size:
		return false, s.changed(r.Split, r.Next, f.size, fmt.Sprintf("it has %d bytes now, it had %d", f.size, r.Next.Size))
	}
	return true, nil
}

func (sc *scan) Relation() (string, bool) {
	if sc.s.settings.format != formatParquet {
		return "", false
	}
	return "(" + sc.parquetSQL(false) + ")", true
}

func (sc *scan) parquetSQL(withSplit bool) string {
	var terms []string
	for _, p := range sc.parts {
		terms = append(terms, sc.s.fusedSQL(p, withSplit))
	}
	switch {
	case len(terms) > 0:
	case withSplit:
		terms = []string{sc.s.nothing("CAST(NULL AS VARCHAR) AS " + splitName)}
	default:
		terms = []string{sc.s.nothing()}
	}
	return strings.Join(terms, " UNION ALL ")
}

func (sc *scan) Rejects() string { return sc.rejects.table }

func (sc *scan) Records() array.RecordReader { return nil }

// Finish returns the ranges with row counts (Parquet: from the footers), hashes and event times.
func (sc *scan) Finish(ctx context.Context, copied string) ([]connectors.Range, error) {
	sums, err := sc.hasher.wait(ctx)
	if err != nil {
		return nil, err
	}
	for i, f := range sc.files {
		if err := sc.settled(ctx, f, sc.ranges[i], sums); err != nil {
			return nil, err
		}
	}
	out := make([]connectors.Range, len(sc.ranges))
	copy(out, sc.ranges)
	if sc.s.settings.format != formatParquet {
		if err := sc.count(ctx, out, sums); err != nil {
			return nil, err
		}
	}
	times, err := sc.times(ctx, copied)
	if err != nil {
		return nil, err
	}
	for i := range out {
		r := &out[i]
		r.Next.Times = r.Next.Times.With(times[r.Split])
		r.Rejected = sc.verdicts[r.Split].rejected
		r.Next.ModTime = sc.files[i].mtime
		if h, ok := sums[r.Split]; ok {
			content := identityOf(r.Next.Content)
			content.hash = h.sum
			r.Next.Content = content.String()
		}
	}
	return out, nil
}

// settled checks that a file is what it was when the reading began, and what its range says.
func (sc *scan) settled(ctx context.Context, f file, r connectors.Range, sums map[string]hashed) error {
	info, err := os.Stat(f.path)
	if err != nil || info.Size() != f.size || info.ModTime().UnixNano() != f.mtime {
		return sc.s.writing(f.path)
	}
	h, ok := sums[f.id]
	if !ok {
		return nil
	}
	if h.err != nil {
		return sc.s.unreadable(ctx, f, h.err)
	}
	if h.size != f.size {
		return sc.s.writing(f.path)
	}
	if known := identityOf(r.Next.Content).hash; known != "" && known != h.sum {
		return sc.s.changed(r.Split, r.Next, f.size, "it has the same size, but other content")
	}
	return nil
}

// Explain finds the place in the input that made a statement fail. Copies explain themselves.
func (sc *scan) Explain(ctx context.Context, err error) error {
	if err == nil || !blamesInput(ctx, err) || sc.s.settings.format != formatParquet {
		return err
	}
	return sc.s.explainParquet(ctx, sc.parts, err)
}

func (sc *scan) Close() error {
	sc.hasher.stop()
	return sc.rejects.drop(context.Background())
}
