package connectors

import (
	"errors"
	"fmt"

	"lockstep/checkpoints"
)

// Check compares the parts of a change with its manifest: one that contradicts itself is a mistake of the
// engine, and no destination writes it.
func (change *Change) Check(lease Lease) error {
	if err := change.check(lease); err != nil {
		return fmt.Errorf("the change contradicts itself and was not written: %w", err)
	}
	return nil
}

func (change *Change) check(lease Lease) error {
	m := change.Manifest
	if err := m.Check(); err != nil {
		return err
	}
	if lease.Pipeline != m.Pipeline {
		return fmt.Errorf("the lease is of pipeline %s, the change of %s", lease.Pipeline, m.Pipeline)
	}
	if change.Plan.ID != m.PlanID {
		return fmt.Errorf("the plan is %s, the manifest names %s", change.Plan.ID, m.PlanID)
	}
	before := change.Before
	if change.Whole {
		before = checkpoints.LiveSum{}
	}
	if before.After(change.Segments, change.Removed) != m.Live {
		return errors.New("the segments are not those of the manifest")
	}
	if p := change.Mended; p != nil && (p.Pipeline != m.Pipeline || p.Seq != m.ParentSeq || p.Checksum() != m.ParentSHA) {
		return errors.New("the mended manifest is not the parent")
	}
	for _, s := range change.Segments {
		// A merge of older segments enters as old as they are.
		if s.SeqLo > s.SeqHi || s.SeqHi > m.Seq || m.Kind == checkpoints.KindBatch && s.SeqHi != m.Seq {
			return fmt.Errorf("the segment of step %s is of changes %d to %d, the manifest of %d", s.Step, s.SeqLo, s.SeqHi, m.Seq)
		}
	}
	if err := checkpoints.CheckRanges(change.Ranges, m); err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, s := range change.Sinks {
		if c, ok := m.Sinks[s.Sink.Name]; !ok || c != s.Counts || changed[s.Sink.Name] {
			return fmt.Errorf("the counts of sink %s are not those of the manifest", s.Sink.Name)
		}
		changed[s.Sink.Name] = true
	}
	for name, c := range m.Sinks {
		if !changed[name] && c.Inserted+c.Updated+c.Deleted > 0 {
			return fmt.Errorf("the manifest counts changes of sink %s, but there are none", name)
		}
	}
	return nil
}
