package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Report is what one committed batch did, for people and for --json.
type Report struct {
	Pipeline string        `json:"pipeline"`
	Batch    int64         `json:"batch"`
	Splits   int           `json:"splits"` // files, partitions, …
	Read     int64         `json:"read"`
	Used     int64         `json:"used"`
	Rejected int64         `json:"rejected"`
	Inserted int64         `json:"inserted"`
	Updated  int64         `json:"updated"`
	Deleted  int64         `json:"deleted"`
	Took     time.Duration `json:"took_ns"`
}

func (l *life) report(inputs *inputs, m checkpoints.Manifest, started time.Time) *Report {
	r := &Report{Pipeline: m.Pipeline, Batch: m.Batch, Took: l.Now().Sub(started)}
	for _, c := range m.Sources {
		r.Splits += c.Splits
		r.Read += c.Read
		r.Used += c.Accepted
		r.Rejected += c.Rejected
	}
	for _, c := range m.Sinks {
		r.Inserted += c.Inserted
		r.Updated += c.Updated
		r.Deleted += c.Deleted
	}
	return r
}

func (l *life) env() checkpoints.Env {
	return checkpoints.Env{Engine: l.Version, DuckDB: l.Plan.Hash.DuckDB, TimeZone: "UTC"}
}

// computeError says in the author's terms that a statement of the plan failed: where it stands in the
// pipeline file, as far as pos tells, and which sink or view it belongs to. DuckDB's message quotes
// generated SQL below its first line; that is left out.
func (p *Pipeline) computeError(pos int, sink string, err error) error {
	msg := firstLine(err)
	where, owner := p.Plan.Where(pos)
	if sink != "" {
		owner = sink
	}
	return &connectors.DataError{Where: where, Err: &computeFailure{owner: owner, msg: msg, err: err},
		Hint: "nothing was committed; correct the expression, for example with TRY_CAST or a WHERE"}
}

// ConditionError says that --where cannot be computed for keys that there are.
type ConditionError struct{ Err error }

func (e *ConditionError) Error() string {
	return "the condition cannot be computed for some key: " + firstLine(e.Err)
}
func (e *ConditionError) Unwrap() error { return e.Err }

// conditionError is the error of a query with a condition of the author's in it.
func conditionError(err error) error {
	if !duck.ByRow(err) {
		return err
	}
	return &ConditionError{err}
}

// firstLine is what DuckDB says, without the statement and without names that nobody wrote.
func firstLine(err error) string {
	var failed *computeFailure
	if errors.As(err, &failed) {
		return failed.msg
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	if kind, rest, ok := strings.Cut(msg, " Error: "); ok && !strings.Contains(kind, " \"") {
		msg = rest
	}
	msg = strings.TrimRight(msg, "!;. ")
	msg, _, _ = strings.Cut(msg, " when casting from source column ")
	return msg
}

type computeFailure struct {
	owner string // "" when several sinks need it
	msg   string
	err   error
}

func (e *computeFailure) Error() string {
	if e.owner == "" {
		return fmt.Sprintf("the SELECT failed on this input: %s", e.msg)
	}
	return fmt.Sprintf("the SELECT of %s failed on this input: %s", e.owner, e.msg)
}
func (e *computeFailure) Unwrap() error { return e.err }
