package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/engine/duck"
	"lockstep/planner"
)

// Options are how a correction is made.
type Options struct {
	DryRun   bool          // nothing is written: the destination may be opened to read
	Yes      bool          // also when it deletes many rows
	Patience time.Duration // how long a run that holds the lease is waited for
	// SaveEvery is how often what Apply has folded is saved, to go on from when it is stopped. 0: never.
	SaveEvery time.Duration
	Sink      string // of Apply: the only table that may change; "" for all
	// Where limits a repair: per sink a condition on its key; sinks without one are left alone. nil: all.
	Where map[string]string

	kind string // under which it is saved
}

// Repair is what a repair did, or would do.
type Repair struct {
	Seq      int64     `json:"seq,omitempty"` // of the change; 0 when nothing was written
	State    bool      `json:"state"`         // the kept state was not what the input gives, and was replaced
	Files    int       `json:"files"`         // read
	Bytes    int64     `json:"bytes"`
	Rows     int64     `json:"rows"`
	Outcomes []Outcome `json:"sinks"`
}

// Quiet: everything was as it should be.
func (r Repair) Quiet() bool {
	for _, o := range r.Outcomes {
		if !o.Quiet() {
			return false
		}
	}
	return !r.State
}

// ManyDeletedError asks before many rows go. Nothing was written.
type ManyDeletedError struct {
	Table        string
	Deleted, Was int64
}

func (e *ManyDeletedError) Error() string {
	return fmt.Sprintf("%d of the %d rows of table %s would be deleted; nothing was written", e.Deleted, e.Was, e.Table)
}

// many is the part of a table's rows that nobody deletes by accident.
const many = 0.2

func askBefore(outcomes []Outcome, o Options) error {
	for _, out := range outcomes {
		if !o.Yes && float64(out.Delete) > many*float64(out.Was) {
			return &ManyDeletedError{Table: out.Sink, Deleted: out.Delete, Was: out.Was}
		}
	}
	return nil
}

// Repair makes the tables what the plan's steps give for everything that was read, whatever they hold: rows
// that were edited, inserted or deleted by others, and tables that are gone. The kept state is held against
// the one that the input gives, and replaced when it is another.
func (p *Pipeline) Repair(ctx context.Context, o Options) (r Repair, err error) {
	head, err := p.Destination.Head(ctx, p.Plan.Name)
	if err != nil {
		return r, err
	}
	if head.Fresh || head.Manifest.Seq == 0 {
		return r, p.neverRan(ctx, head)
	}
	if err := p.fits(ctx, head); err != nil {
		return r, err
	}
	b, err := p.build(ctx, head, func(planner.Step) bool { return true }, false, Options{})
	if err != nil {
		return r, err
	}
	l := &life{Pipeline: p, tables: map[string]*stateTable{}}
	defer func() { l.release(ctx) }()
	if head, err = l.newest(ctx, o); err != nil {
		return r, err
	}
	if err := b.upTo(ctx, head); err != nil {
		return r, err
	}
	l.manifest = head.Manifest
	r.Files, r.Bytes, r.Rows = len(b.folded.ranges), b.folded.bytes, b.folded.rows()
	if r.State, err = l.hold(ctx, b); err != nil {
		return r, err
	}
	if r.State && o.Where != nil {
		return r, &connectors.DamagedError{What: "the state of " + p.Plan.Name,
			Reason: "it is not what the input gives, so that a part cannot be repaired by itself; nothing was written. Repair without --where"}
	}
	if err := l.finalise(ctx); err != nil {
		return r, err
	}
	var untouched []connectors.SinkSpec
	for _, sink := range p.Plan.Sinks {
		where := o.Where[sink.Name]
		if o.Where != nil && where == "" {
			untouched = append(untouched, sinkSpec(sink))
			continue
		}
		out, err := l.compare(ctx, sink, where)
		if err != nil {
			return r, err
		}
		if where != "" && out.Was+out.Insert-out.Delete != out.change.Counts.Rows {
			return r, &connectors.TargetError{Table: sink.Name, Reason: "rows outside of --where are missing, or too many, as well; nothing was written", Hint: "repair without --where"}
		}
		r.Outcomes = append(r.Outcomes, out)
	}
	if err := p.Destination.CheckTargets(ctx, head, untouched); err != nil {
		return r, err
	}
	if o.DryRun || r.Quiet() {
		return r, nil
	}
	if err := askBefore(r.Outcomes, o); err != nil {
		return r, err
	}
	if err := l.correct(ctx, correction{kind: checkpoints.KindRepair, outcomes: r.Outcomes, whole: r.State}); err != nil {
		return r, err
	}
	r.Seq = l.manifest.Seq
	return r, nil
}

// hold restores the kept state and holds it against the one that was built. The state at hand is then the
// kept one when it is right, otherwise the built one.
func (l *life) hold(ctx context.Context, b *building) (wrong bool, err error) {
	for _, step := range l.Plan.Steps {
		if err := l.Duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+builtState(step)+" AS FROM "+duck.Quote(step.State.Name)); err != nil {
			return false, err
		}
	}
	head := connectors.Head{Manifest: l.manifest}
	position, segments, err := l.Pipeline.consumed(ctx, head)
	if err == nil {
		l.position, l.live = position, segments
		err = l.restore(ctx, segments)
	}
	if err != nil && !recoverable(err) {
		return false, err
	}
	wrong = err != nil
	for _, step := range l.Plan.Steps {
		if wrong {
			break
		}
		var n int64
		if err := l.Duck.QueryRow(ctx, otherState(step), nil, &n); err != nil {
			return false, err
		}
		wrong = n > 0
	}
	for _, step := range l.Plan.Steps {
		if wrong {
			if err := l.Duck.Exec(ctx, "CREATE OR REPLACE TEMP TABLE "+duck.Quote(step.State.Name)+" AS FROM "+builtState(step)); err != nil {
				return false, err
			}
		}
		if err := l.Duck.Exec(ctx, "DROP TABLE "+builtState(step)); err != nil {
			return false, err
		}
	}
	if wrong {
		l.position, l.tables = b.position, b.tables
	}
	return wrong, nil
}

func builtState(step planner.Step) string { return duck.Quote("_built_" + step.State.Name) }

// otherState counts the keys whose kept and built state differ. Sums of floating-point numbers depend on
// the order of the rows.
func otherState(step planner.Step) string {
	on, same := []string{"true"}, []string{"_k._is", "_b._is"}
	for i, c := range step.State.Cols {
		k, b := "_k."+duck.Quote(c.Name), "_b."+duck.Quote(c.Name)
		equal := k + " IS NOT DISTINCT FROM " + b
		switch {
		case i < step.State.Key:
			on = append(on, equal)
		case c.Type == "DOUBLE" || c.Type == "FLOAT":
			same = append(same, fmt.Sprintf("(%s OR abs(%s - %s) <= 1e-9 * greatest(abs(%s), abs(%s), 1))", equal, k, b, k, b))
		default:
			same = append(same, equal)
		}
	}
	return fmt.Sprintf("SELECT count(*) FROM (SELECT *, true AS _is FROM %s) _k FULL JOIN (SELECT *, true AS _is FROM %s) _b ON %s WHERE NOT coalesce(%s, false)",
		duck.Quote(step.State.Name), builtState(step), strings.Join(on, " AND "), strings.Join(same, " AND "))
}
