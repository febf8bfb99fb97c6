package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

// ID names a backfill of a pipeline by what was asked. The plan is no part of it: what was saved under another
// one is found, and not used.
func (s BackfillSpec) ID() string {
	sum := sha256.Sum256(encoded(s))
	return hex.EncodeToString(sum[:4])
}

const backfillJob = checkpoints.KindBackfill + "/"

func (s BackfillSpec) job() string { return backfillJob + s.ID() }

func (b *backfill) saving() saving {
	return saving{kind: b.spec.job(), every: b.spec.SaveEvery, look: b.spec.look, asked: &b.spec, begun: b.spec.Saved}
}

// forget removes what was saved, where nothing was to be written. What is left behind is of no harm: run again,
// the backfill finds nothing to write.
func (b *backfill) forget(ctx context.Context) {
	_ = b.Destination.ForgetJob(ctx, b.Plan.Name, b.spec.job())
}

// SavedBackfill is a backfill that was stopped, and what was saved of it.
type SavedBackfill struct {
	ID    string       `json:"id"`
	Asked BackfillSpec `json:"asked"`
	Progress
	Fits    bool `json:"fits"`              // it is gone on with; otherwise it is begun anew
	Damaged bool `json:"damaged,omitempty"` // what was asked cannot be read
}

// SavedBackfills lists the backfills of a pipeline that were stopped. version is that of the engine which would
// go on with them.
func SavedBackfills(ctx context.Context, destination connectors.Destination, pipeline, version string) ([]SavedBackfill, error) {
	head, err := destination.Head(ctx, pipeline)
	if err != nil && !recoverable(err) {
		return nil, err
	}
	jobs, err := destination.Jobs(ctx, pipeline)
	if err != nil {
		return nil, err
	}
	var out []SavedBackfill
	for _, job := range jobs {
		id, is := strings.CutPrefix(job.Kind, backfillJob)
		if !is {
			continue
		}
		var spec saved
		var of stateOf
		b := SavedBackfill{ID: id, Damaged: true}
		if json.Unmarshal([]byte(job.Spec), &spec) == nil && spec.Asked != nil && spec.Asked.ID() == id {
			b.Asked, b.Progress, b.Damaged = *spec.Asked, spec.Progress, false
			b.Fits = json.Unmarshal(spec.Of, &of) == nil && of.Plan == head.Plan.ID && of.Engine == version
		}
		out = append(out, b)
	}
	return out, nil
}

// CancelBackfill forgets what was saved of a backfill. Nothing else of it was written.
func CancelBackfill(ctx context.Context, destination connectors.Destination, pipeline, id string) error {
	return destination.ForgetJob(ctx, pipeline, backfillJob+id)
}
