package postgres

import (
	"context"
	"errors"
	"fmt"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/protocol"
)

// A run of the model is the code of connectors/protocol, and around it what engine.open and engine.drain
// do: look, take, look again when another run committed in between, and commit batch after batch. Every
// step goes to the model of the server. What a run knows follows from what its steps answered; so instead
// of being stopped in the middle it is run again from its last safe place with the answers so far, up to
// the next step.

// phase is the last safe place of a run.
type phase int8

const (
	opening phase = iota
	writingPhase
	releasing
	done
	stopped // with an error that somebody has to do something about
)

// step is what a run asks of the server.
type step int8

const (
	noStep step = iota
	stepHead
	stepHolder
	stepEnter
	stepBump
	stepEntered // COMMIT of the lease
	stepRows
	stepRecord
	stepAdvance
	stepCommit
	stepThere
	stepEnded // there, after the end
	stepFence
	stepRelease
)

var stepNames = [...]string{"", "reads the head", "reads the lease", "enters the lease", "bumps the fence", "commits the lease",
	"merges its rows", "writes its manifest", "moves the head", "sends COMMIT", "looks for its change", "waits, and looks for its change", "reads the fence", "gives the lease back"}

// answer is what came of a step.
type answer struct {
	said  said
	head  version
	folds [batches]int8 // of the head
	who   int8          // holder
	fence int8
}

type said int8

const (
	saidYes said = iota
	saidNo
	saidLost    // the connection, or a timeout: it passes
	saidEdited  // the table, or a record, is not what it should be
	saidNothing // for good, and nobody knows more
)

// run is one run.
type run struct {
	phase phase
	try   int8          // of the change, or of the lease
	fence int8          // of the lease
	head  version       // of the last change
	folds [batches]int8 // its memory
	tx    transaction
	known [7]answer // what its steps answered since its last safe place
	asked int8
}

// pending is the step at which there is no answer yet. It is thrown.
type pending struct{ step step }

var (
	errLost    = errors.New("the connection was lost")
	errFailed  = errors.New("nobody knows")
	errStopped = &connectors.TargetError{Reason: "edited"}
)

// actor plays a run. It implements protocol.Taking and protocol.Committing.
type actor struct {
	was    run
	at     int8
	mutant *mutant
	heads  []answer
	fence  int8 // that Bump gave
}

func (a *actor) ask(s step) answer {
	if a.at == a.was.asked {
		panic(pending{s})
	}
	a.at++
	return a.was.known[a.at-1]
}

func (a *actor) look() answer {
	if a.mutant.oldHead && len(a.heads) > 1 {
		return a.heads[0]
	}
	a.heads = append(a.heads, a.ask(stepHead))
	return a.heads[len(a.heads)-1]
}

func (a *actor) Head(context.Context) (connectors.Head, error) {
	h := a.look()
	fence := h.fence
	if a.mutant.oldHead && a.fence != 0 {
		fence = a.fence
	}
	return connectors.Head{Fence: int64(fence), Manifest: checkpoints.Manifest{Seq: int64(h.head.seq)}}, nil
}

// Once is run again, from its beginning, when nobody said how it ended.
func (a *actor) Once(_ context.Context, fn func() error) (err error) {
	if err = fn(); err == nil && a.ask(stepEntered).said == saidLost {
		err = errLost
	}
	if err == errLost && a.was.try+1 < tries {
		panic(again{})
	}
	return err
}

// again is thrown to run Once again.
type again struct{}

func (a *actor) Holder(context.Context) (string, bool, error) {
	switch who := a.ask(stepHolder).who; who {
	case nobody:
		return "", false, nil
	case ended:
		return "ended", true, nil
	default:
		return "running", false, nil
	}
}

func (a *actor) Enter(context.Context, connectors.Lease, string) (bool, error) {
	switch a.ask(stepEnter).said {
	case saidLost:
		return false, errLost
	case saidNo:
		return false, nil
	}
	return true, nil
}

func (a *actor) Held(context.Context) error { return &connectors.HeldError{} }

func (a *actor) Bump(context.Context, string) (int64, error) {
	answer := a.ask(stepBump)
	if answer.said == saidLost {
		return 0, errLost
	}
	a.fence = answer.fence
	return int64(answer.fence), nil
}

func (a *actor) Keep(connectors.Lease) {}

func (a *actor) Alive() error { return nil }

func (a *actor) Begin(context.Context) error { return nil } // locks nothing and sees nothing

func (a *actor) Rows(context.Context) error   { return a.wrote(stepRows) }
func (a *actor) Record(context.Context) error { return a.wrote(stepRecord) }

func (a *actor) wrote(s step) error {
	switch a.ask(s).said {
	case saidLost:
		return errLost
	case saidEdited:
		return errStopped
	}
	return nil
}

func (a *actor) Advance(context.Context) (int64, error) {
	switch a.ask(stepAdvance).said {
	case saidLost:
		return 0, errLost
	case saidNo:
		return 0, nil
	}
	return 1, nil
}

func (a *actor) Commit(context.Context) error {
	if a.ask(stepCommit).said == saidLost {
		return errLost
	}
	return nil
}

func (a *actor) Rollback(context.Context) {}
func (a *actor) Leave()                   {}

func (a *actor) There(_ context.Context, wait bool) (bool, error) {
	switch {
	case wait && a.mutant.believes != nil:
		return *a.mutant.believes, nil
	case !wait && a.mutant.trusts:
		return true, nil
	}
	s := stepThere
	if wait && !a.mutant.impatient {
		s = stepEnded
	}
	answer := a.ask(s)
	if answer.said == saidNothing {
		return false, errFailed
	}
	return answer.said == saidYes, nil
}

func (a *actor) Fence(context.Context) (int64, error) {
	if a.mutant.proud {
		return int64(a.was.fence), nil
	}
	return int64(a.ask(stepFence).fence), nil
}

func (a *actor) Passes(err error) bool { return err == errLost }

// waiting is the next batch; batches when there is none.
func waiting(folds [batches]int8) int8 {
	for i, n := range folds {
		if n == 0 {
			return int8(i)
		}
	}
	return batches
}

// played is what comes of a run from its last safe place.
type played struct {
	next  step // that it waits for, or
	again bool // it takes its lease once more, or
	err   error
	fence int8   // of the lease
	last  answer // head
	first answer
}

// play runs the run from its last safe place. What comes of it depends on nothing else, and is remembered.
func (m *model) play(was run) played {
	was.tx = transaction{}
	p, ok := m.plays[was]
	if !ok {
		p = m.playOut(was)
		m.plays[was] = p
	}
	return p
}

func (m *model) playOut(was run) (p played) {
	a := &actor{was: was, mutant: &m.mutant}
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case pending:
			p.next = thrown.step
		case again:
			p.again = true
		default:
			panic(thrown)
		}
		p.fence = a.fence
		if n := len(a.heads); n > 0 {
			p.first, p.last = a.heads[0], a.heads[n-1]
		}
	}()
	ctx := context.Background()
	switch was.phase {
	case opening:
		a.look()
		if waiting(a.heads[0].folds) < batches {
			_, _, p.err = protocol.Take(ctx, a, connectors.Lease{})
		}
	case writingPhase:
		p.err = protocol.Attempt(ctx, a, connectors.Lease{Fence: int64(was.fence)})
	case releasing:
		a.ask(stepRelease)
	}
	return p
}

// settle takes a run to its next safe place, when it has come to an end. It gives what is wrong with what
// the run says then.
func (m *model) settle(s *state, number int8) (wrong string) {
	for {
		r, me := &s.runs[number], first+number
		if r.phase == done || r.phase == stopped {
			return ""
		}
		p := m.play(*r)
		if p.next != noStep {
			return ""
		}
		if p.again {
			known := r.known
			*r = run{try: r.try + 1, tx: r.tx, asked: 2}
			copy(r.known[:2], known[:2])
			continue
		}
		err := p.err
		var fenced *connectors.FencedError
		var target *connectors.TargetError
		var held *connectors.HeldError
		var unknown *protocol.Unknown
		var not *protocol.NotCommitted
		switch {
		case r.phase == opening && err == nil && waiting(p.first.folds) == batches, r.phase == releasing:
			*r = run{phase: done}
			return ""
		case r.phase == opening && err == nil:
			*r = run{phase: writingPhase, fence: p.fence, head: p.last.head, folds: p.last.folds}
			if waiting(p.last.folds) == batches {
				r.phase = releasing
			}
		case r.phase == writingPhase && err == nil:
			batch := waiting(r.folds)
			if seq := r.head.seq + 1; s.written[seq].by != me || s.written[seq].batch != batch {
				wrong = fmt.Sprintf("run %d says that batch %d is committed, and it is not", me, batch)
			}
			r.folds[batch]++
			*r = run{phase: writingPhase, fence: r.fence, head: version{r.head.seq + 1, s.written[r.head.seq+1].age}, folds: r.folds}
			s.past(me)
			if waiting(r.folds) == batches {
				r.phase = releasing
			}
			if wrong != "" {
				return wrong
			}
		case r.phase == writingPhase && (err == errLost || errors.As(err, &not) && not.Err == errLost) && r.try+1 < tries:
			r.try, r.known, r.asked = r.try+1, [7]answer{}, 0
		default:
			r.tx = transaction{} // rolled back
			mine := r.phase == writingPhase && r.head.seq < batches && s.written[r.head.seq+1].by == me
			switch {
			case errors.As(err, &fenced):
				if !s.damaged && s.fence == max(r.fence, p.fence) {
					wrong = fmt.Sprintf("run %d says that it was taken over, and it was not", me)
				}
				if mine {
					wrong = fmt.Sprintf("run %d says that nothing was written, and it was", me)
				}
			case errors.As(err, &target):
				if !s.damaged {
					wrong = fmt.Sprintf("run %d says that somebody edited the database, and nobody did", me)
				}
				s.again(int(number))
				s.runs[number] = run{phase: stopped}
				return wrong
			case errors.As(err, &held), errors.As(err, &unknown), err == errLost, errors.As(err, &not), errors.Is(err, protocol.ErrMissing):
			default:
				wrong = fmt.Sprintf("run %d fails: %v", me, err)
			}
			s.again(int(number))
			if wrong != "" {
				return wrong
			}
		}
	}
}
