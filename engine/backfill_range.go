package engine

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/planner"
)

// choose finds the range and what to do with every split.
func (b *backfill) choose(ctx context.Context) error {
	if b.spec.Named != nil {
		for i := range b.splits {
			if err := b.look(ctx, &b.splits[i]); err != nil {
				return err
			}
		}
	}
	var err error
	if b.rng, err = b.asked(ctx); err != nil {
		return err
	}
	if b.rng.Whole == "" {
		why, err := b.within(ctx)
		if err != nil {
			return err
		}
		if why != "" {
			b.rng = b.Plan.Everything(why)
		}
	}
	if b.rng.Whole != "" {
		if err := b.whole(ctx); err != nil {
			return err
		}
	}
	b.count()
	return nil
}

// count fills in what would be done.
func (b *backfill) count() {
	b.found = Backfill{ID: b.spec.ID(), Whole: b.rng.Whole, Keys: b.rng.Keys, Widened: b.rng.Widened && b.spec.Named == nil}
	for _, s := range b.splits {
		if s.State != connectors.StandsNew || s.taken {
			b.found.Of++
		}
		if s.taken {
			state := map[string]string{connectors.StandsNew: "added", connectors.StandsGone: "removed", connectors.StandsChanged: "replaced"}[s.State]
			b.found.Taken = append(b.found.Taken, Taken{Source: s.source.Name, Split: s.Shown, State: state, Was: s.Was.Rows, Rows: s.now.Rows})
		}
	}
	for _, splits := range b.read {
		for _, split := range splits {
			b.found.Splits++
			b.found.Bytes += split.Size
		}
	}
}

// asked is the range that was asked for.
func (b *backfill) asked(ctx context.Context) (*planner.Range, error) {
	sinks, err := b.targets()
	if err != nil {
		return nil, err
	}
	switch {
	case b.spec.edited != "":
		return b.Plan.Everything("table " + b.spec.edited + " is not as the pipeline left it"), nil
	case b.spec.Named != nil:
		return b.ofNamed(ctx, sinks)
	case b.spec.Where != "":
		return b.Plan.Within(ctx, sinks[0], "--where", b.spec.Where)
	}
	sink := sinks[0]
	if at := slices.IndexFunc(sinks, func(s planner.Sink) bool { _, why := b.Plan.EventTime(s); return why == "" }); at > 0 {
		sink = sinks[at]
	}
	typ, why := b.Plan.EventTime(sink)
	lo, hi, err := planner.Times(ctx, typ, b.spec.From, b.spec.To, b.spec.Zone)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return b.Plan.Everything(why), nil
	}
	return b.Plan.During(ctx, sink, lo, hi)
}

// ofCondition is the error of a query with the condition that was given, if one was.
func (b *backfill) ofCondition(err error) error {
	if b.spec.Where == "" {
		return err
	}
	return conditionError(err)
}

// askable makes sure that it is not the condition that fails on the rows that are to be read.
func (b *backfill) askable(ctx context.Context) error {
	for _, s := range b.readSources() {
		ranges := consumedRanges(b.read[s.Name])
		if b.spec.Where == "" || len(ranges) == 0 {
			continue
		}
		_, err := b.reading(ctx, s, ranges, func(relation string) error {
			return b.ofCondition(b.Duck.QueryRow(ctx, "SELECT count(*) FROM "+relation+" WHERE "+b.rng.Needed[s.Name], nil, new(int64)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ofNamed is the range of all keys that the named splits have, or had, rows of.
func (b *backfill) ofNamed(ctx context.Context, sinks []planner.Sink) (*planner.Range, error) {
	var all checkpoints.Times
	for _, s := range b.splits {
		if !s.named {
			continue
		}
		for _, split := range []checkpoints.Split{s.Was, s.now} {
			if split.Rows > 0 && !split.Times.Some {
				if s.source.EventTime == "" {
					return b.Plan.Everything("source " + s.source.Name + " has no WATERMARK FOR, so that nothing is kept of the event times of its files"), nil
				}
				return b.Plan.Everything(fmt.Sprintf("the event times of %s are not known", s.Shown)), nil
			}
			all = all.With(split.Times)
		}
	}
	if all.Min == math.MinInt64 || all.Max == math.MaxInt64 {
		return b.Plan.Everything("they hold an infinite time"), nil
	}
	var r *planner.Range
	for _, sink := range sinks {
		var err error
		if r, err = b.Plan.During(ctx, sink, all.Min, all.Max); err != nil || r.Whole == "" {
			return r, err
		}
	}
	return r, nil
}

// within decides about every split for a range of keys: those that may have rows of it are read, and those
// that were changed, and lie in it, taken over. It gives the reason why a range is not enough for those that
// were named.
func (b *backfill) within(ctx context.Context) (why string, err error) {
	times, err := b.times(ctx)
	if err != nil {
		return "", err
	}
	for i := range b.splits {
		s := &b.splits[i]
		before := times[splitID{s.source.Name, s.Split}]
		if s.State == connectors.StandsNew && !s.named {
			continue
		}
		if err := b.lies(ctx, s); err != nil {
			return "", err
		}
		switch {
		case s.State == connectors.StandsSame:
			if before.possible {
				b.reads(*s, s.Was)
			}
			continue
		case s.State == connectors.StandsGone && !s.named:
			if before.possible {
				return "", b.needed(*s, "is gone, but its rows are needed for this range",
					"put the file back; or, when its rows are to go:\n  etl backfill FILE --files "+connectors.ShellWord(s.Shown))
			}
			continue
		case s.State == connectors.StandsChanged && !s.named && !before.possible && !s.some:
			continue // no matter for this range; a run still stops at it
		case s.State == connectors.StandsChanged && s.source.Replaced && b.spec.Named != nil:
			return s.Shown + " was written anew", nil
		case s.State == connectors.StandsChanged && s.source.Replaced:
			return "", b.waits(*s)
		case s.State != connectors.StandsNew && !before.certain:
			why = hadOther(*s)
		case s.out > 0:
			why = fmt.Sprintf("%s has rows that are not in the range: %d", s.Shown, s.out)
		default:
			s.taken = true
			if s.State != connectors.StandsGone {
				b.reads(*s, s.now)
			}
			continue
		}
		if !s.named {
			return "", b.needed(*s, "was changed after it was read, and "+strings.TrimPrefix(why, s.Shown+" "),
				"take it over as it is now, with all keys that it had and has rows of:\n  etl backfill FILE --files "+connectors.ShellWord(s.Shown))
		}
		return why, nil
	}
	return "", nil
}

func (b *backfill) needed(s stands, reason, hint string) error {
	return &connectors.InputError{Source: s.source.Name, Split: s.Shown, Reason: reason, Hint: hint, Seq: s.Was.Seq}
}

// takeOver says how a file that was changed is taken over as well.
func (b *backfill) takeOver(s stands) string {
	if b.spec.Named != nil {
		return "take it over as well, by another --files " + connectors.ShellWord(s.Shown)
	}
	return "take it over as it is now:\n  etl backfill FILE --files " + connectors.ShellWord(s.Shown)
}

// waits says of a file that may be replaced, and was, that a run does it better: it knows the rows of before.
func (b *backfill) waits(s stands) error {
	return b.needed(s, "was written anew, which the next run takes in", "run the pipeline first, and backfill then what is still wrong")
}

// hadOther says which rows a split had that may not be in the range.
func hadOther(s stands) string {
	switch {
	case s.source.EventTime == "":
		return fmt.Sprintf("%s had rows of which nothing is known: source %s has no WATERMARK FOR, which keeps the event times of every file", s.Shown, s.source.Name)
	case !s.Was.Times.Some:
		return fmt.Sprintf("%s had rows of which no event time is known", s.Shown)
	case !slices.ContainsFunc(s.source.Columns, func(c planner.Column) bool { return c.Name == s.source.EventTime && c.NotNull }):
		return fmt.Sprintf("%s may have had rows without a %s, which can be in any range: it would be known of a column that is NOT NULL", s.Shown, s.source.EventTime)
	}
	return fmt.Sprintf("%s had rows from %s to %s, which may not all be in the range", s.Shown, shownTime(s.Was.Times.Min), shownTime(s.Was.Times.Max))
}

func shownTime(us int64) string {
	switch us {
	case math.MinInt64:
		return "-infinity"
	case math.MaxInt64:
		return "infinity"
	}
	return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.999999")
}

// whole reads everything, and takes over what was named, and what a run would read anew. All else must be what
// it was.
func (b *backfill) whole(ctx context.Context) error {
	b.read = checkpoints.Position{}
	for i := range b.splits {
		s := &b.splits[i]
		s.taken = s.named && s.State != connectors.StandsSame
		switch {
		case s.State == connectors.StandsChanged && s.source.Replaced:
			if err := b.look(ctx, s); err != nil {
				return err
			}
			s.taken = true
			b.reads(*s, s.now)
		case s.taken && s.State != connectors.StandsGone:
			b.reads(*s, s.now)
		case s.taken, s.State == connectors.StandsNew:
		case s.State == connectors.StandsSame:
			b.reads(*s, s.Was)
		case s.State == connectors.StandsGone:
			return b.needed(*s, "is gone, but everything has to be computed again: "+b.rng.Whole,
				"put the file back; or, when its rows are to go, name it as well: --files "+connectors.ShellWord(s.Shown))
		default:
			return b.needed(*s, "was changed after it was read, and everything has to be computed again: "+b.rng.Whole,
				b.takeOver(*s))
		}
	}
	return nil
}

func (b *backfill) reads(s stands, split checkpoints.Split) {
	if b.read[s.source.Name] == nil {
		b.read[s.source.Name] = checkpoints.Splits{}
	}
	b.read[s.source.Name][s.Split] = split
}

// look reads what a split is now, when it is not what it was: its rows, its bytes and its event times.
func (b *backfill) look(ctx context.Context, s *stands) error { return b.lookAt(ctx, s, nil) }

// lies asks as well which of its rows are needed, and which are not inside.
func (b *backfill) lies(ctx context.Context, s *stands) error {
	return b.lookAt(ctx, s, func(relation string) error {
		return b.ofCondition(b.Duck.QueryRow(ctx, fmt.Sprintf("SELECT coalesce(bool_or(%s), false), count(*) FILTER (NOT %s) FROM %s",
			b.rng.Needed[s.source.Name], b.rng.Inside[s.source.Name], relation), nil, &s.some, &s.out))
	})
}

func (b *backfill) lookAt(ctx context.Context, s *stands, fn func(relation string) error) error {
	if s.State != connectors.StandsChanged && (s.State != connectors.StandsNew || !s.named) {
		return nil
	}
	if s.Now.Split == "" {
		return &connectors.DataError{Source: s.source.Name, Where: s.Shown, Err: fmt.Errorf("is empty (0 bytes)"), Hint: "write it again, or remove it"}
	}
	r := s.Now
	if s.now.Content != "" { // it was looked at before
		r.Next, r.Rows = s.now, s.now.Rows
	}
	ranges, err := b.reading(ctx, s.source, []connectors.Range{r}, fn)
	if err == nil {
		s.now = ranges[0].Next
	}
	return err
}

// reading opens ranges of a source, lets fn look at their rows, and gives what was found of them.
func (b *backfill) reading(ctx context.Context, source planner.Source, ranges []connectors.Range, fn func(relation string) error) ([]connectors.Range, error) {
	const name = "_looked_at"
	in := &input{plan: source, ranges: ranges}
	scan, err := b.Sources[source.Name].Read(ctx, ranges)
	if err != nil {
		return nil, err
	}
	in.scan = scan
	defer scan.Close()
	relation, err := b.relation(ctx, in)
	if err == nil {
		err = b.view(ctx, name, source.Columns, relation)
	}
	if err == nil && fn != nil {
		err = fn(name)
	}
	if err == nil {
		ranges, err = scan.Finish(ctx, in.copied)
	}
	if err != nil {
		return nil, (&inputs{list: []*input{in}}).explain(ctx, err)
	}
	return ranges, nil
}

type splitID struct{ source, id string }

// verdict is what the event times of the rows that were read of a split say.
type verdict struct{ possible, certain bool }

// times holds the event times of all splits against the range.
func (b *backfill) times(ctx context.Context) (map[splitID]verdict, error) {
	out := map[splitID]verdict{}
	for _, source := range b.readSources() {
		possible, certain := b.rng.Files(source.Name)
		typ := "TIMESTAMP"
		if at := slices.IndexFunc(source.Columns, func(c planner.Column) bool { return c.Name == source.EventTime }); at >= 0 {
			typ = source.Columns[at].Type
		}
		var known, changed []stands
		for _, s := range b.splits {
			switch {
			case s.source.Name != source.Name || s.State == connectors.StandsNew:
			case s.Was.Rows == 0:
				out[splitID{source.Name, s.Split}] = verdict{certain: true}
			default:
				if known = append(known, s); s.State != connectors.StandsSame {
					changed = append(changed, s)
				}
			}
		}
		err := b.askTimes(ctx, known, typ, possible, func(s stands, yes bool) { out[splitID{source.Name, s.Split}] = verdict{possible: yes} })
		if err == nil {
			err = b.askTimes(ctx, changed, typ, certain, func(s stands, yes bool) {
				v := out[splitID{source.Name, s.Split}]
				out[splitID{source.Name, s.Split}] = verdict{possible: v.possible, certain: yes}
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// askTimes evaluates a condition of a range over the event times of splits, which are of a type.
func (b *backfill) askTimes(ctx context.Context, splits []stands, typ, condition string, say func(stands, bool)) error {
	if len(splits) == 0 {
		return nil
	}
	lo, hi := make([]string, len(splits)), make([]string, len(splits))
	for i, s := range splits {
		lo[i], hi[i] = "NULL", "NULL"
		if t := s.Was.Times; t.Some {
			lo[i], hi[i] = fmt.Sprint(t.Min), fmt.Sprint(t.Max)
		}
	}
	end := func(us string) string { // microseconds are rounded down
		up := us
		if typ == "TIMESTAMP_NS" && us == "b" {
			up = "b + 1"
		}
		infinite := ""
		if typ == "DATE" || typ == "TIMESTAMP" || typ == "TIMESTAMP WITH TIME ZONE" { // others have none
			infinite = fmt.Sprintf("WHEN %d THEN CAST('-infinity' AS %s) WHEN %d THEN CAST('infinity' AS %[2]s) ", math.MinInt64, typ, math.MaxInt64)
		}
		return "CASE " + us + " " + infinite + "WHEN NULL THEN NULL ELSE " + planner.EventTime(typ, up) + " END"
	}
	query := fmt.Sprintf("SELECT i, %s FROM (SELECT i, %s AS lo, %s AS hi FROM (SELECT unnest(range(%d)) AS i, unnest([%s]::BIGINT[]) AS a, unnest([%s]::BIGINT[]) AS b))",
		condition, end("a"), end("b"), len(splits), strings.Join(lo, ", "), strings.Join(hi, ", "))
	return b.Duck.Each(ctx, query, nil, func(rows *sql.Rows) error {
		var i int
		var yes bool
		err := rows.Scan(&i, &yes)
		say(splits[i], yes)
		return err
	})
}
