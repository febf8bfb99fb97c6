package postgres

import (
	"fmt"
	"strings"
)

// outcome is what can come of a state.
type outcome struct {
	what event
	to   state
}

// event is what happened.
type event struct {
	run  int8 // that did a step, or 0
	step step
	what string // all of it, or how the step ended
	to   int8   // the run that it happened to
}

func (e event) String() string {
	text := e.what
	if e.run != 0 {
		text = fmt.Sprintf("run %d %s%s", e.run, stepNames[e.step], e.what)
	}
	return strings.ReplaceAll(text, "run #", fmt.Sprintf("run %d", e.to))
}

// model is the protocol with the rules that hold in it.
type model struct {
	rules
	mutant
	plays map[run]played
}

// mutant is the protocol with a part left out.
type mutant struct {
	oldHead   bool  // the head is not read again after the lease was taken
	believes  *bool // the change is not looked for when the answer to COMMIT is lost: this is taken for it
	trusts    bool  // it is not looked for when COMMIT was answered
	impatient bool  // it is looked for without waiting for the end of the old session
	proud     bool  // a run that finds its rows changed does not ask whether it was taken over
}

// steps are the outcomes of what a run waits for.
func (m *model) steps(s *state, number int8) (all []outcome) {
	next := m.play(s.runs[number]).next
	if next == noStep {
		return nil
	}
	me := first + number
	to := func(what string, do func(*state, *run)) {
		to := *s
		do(&to, &to.runs[number])
		all = append(all, outcome{event{run: me, step: next, what: what}, to})
	}
	// can lets the step have an answer, after it did something.
	can := func(what string, do func(*state, *run) answer) {
		to(what, func(s *state, r *run) {
			given := do(s, r)
			r.known[r.asked] = given
			r.asked++
		})
	}
	is := func(given answer) func(*state, *run) answer {
		return func(*state, *run) answer { return given }
	}
	cut := func(what string, sent bool) {
		to(what, func(s *state, r *run) { s.cut(r, sent) })
	}
	// inTx is a statement of a transaction: it waits for a lock, or does something.
	inTx := func(lock func(*transaction) bool, do func(*state, *run) answer) {
		r := &s.runs[number]
		cut(": its connection is cut, or it waits too long", false)
		t := s.blocker(&r.tx, lock)
		if t == nil {
			can("", do)
			return
		}
		if next == stepBump && t != &s.sent && r.tx.replaced == t.run {
			other := t.run - first
			ended := *s
			ended.cut(&ended.runs[other], false)
			all = append(all, outcome{event{what: "the session of run # is ended, for it blocks the one that takes over", to: t.run}, ended})
		}
	}
	begun := func(r *run) *transaction { r.tx.run = me; return &r.tx }
	commit := func() {
		can("", func(s *state, r *run) answer { s.end(&r.tx, true); return answer{} })
		cut(", which fails or never arrives", false)
		cut(", and its connection is cut", true)
	}

	switch next {
	case stepHead:
		given := answer{head: s.head, fence: s.fence}
		for seq := int8(1); seq <= s.head.seq; seq++ {
			given.folds[s.written[seq].batch]++
		}
		if !m.oldHead && s.runs[number].asked < 2 { // of what is read before the lease is taken nothing else counts
			all := waiting(given.folds) == batches
			if given = (answer{}); all {
				given.folds = [batches]int8{1, 1, 1}
			}
		}
		can("", is(given))
	case stepHolder:
		can("", is(answer{who: s.holder}))
	case stepEnter:
		if known := s.runs[number].known[s.runs[number].asked-1].who; s.holder != nobody && !(known == ended && s.holder == ended) && s.holder != me {
			can(": it is held", is(answer{said: saidNo}))
		}
		inTx(locksLease, func(s *state, r *run) answer {
			known := r.known[r.asked-1].who
			t := begun(r)
			if t.lease = true; known != me && known != ended {
				t.replaced = known
			}
			r.known[r.asked-1] = answer{} // it counts no more
			return answer{}
		})
	case stepBump:
		inTx(locksHead, func(s *state, r *run) answer {
			r.tx.head, r.tx.fence = true, s.fence
			if m.bumps {
				r.tx.fence++
			}
			return answer{fence: r.tx.fence}
		})
	case stepEntered:
		commit()
	case stepRows:
		inTx(locksKey, func(s *state, r *run) answer {
			fresh := r.folds == [batches]int8{}
			if s.row.there == fresh || m.guard && s.row.seq > r.head.seq+1 {
				r.tx = transaction{}
				return answer{said: saidEdited}
			}
			t := begun(r)
			t.key, t.row = true, row{there: true, seq: r.head.seq + 1, folds: r.folds}
			t.row.folds[waiting(r.folds)]++
			return answer{}
		})
	case stepRecord:
		seq := s.runs[number].head.seq + 1
		inTx(func(t *transaction) bool { return m.once && t.recorded && t.next.parent+1 == seq }, func(s *state, r *run) answer {
			if m.once && s.written[seq] != (manifest{}) {
				r.tx = transaction{}
				return answer{said: saidEdited}
			}
			r.tx.recorded = true
			r.tx.next = manifest{age: 1, parent: r.head.seq, parentAge: r.head.age, batch: waiting(r.folds), by: me}
			if s.damaged {
				r.tx.next.age = 2
			}
			return answer{}
		})
	case stepAdvance:
		lock := locksHead
		if m.readOnly {
			lock = func(*transaction) bool { return false }
		}
		inTx(lock, func(s *state, r *run) answer {
			if m.fence && s.fence != r.fence || m.seq && s.head.seq != r.head.seq || m.sha && s.head != r.head {
				r.tx = transaction{}
				return answer{said: saidNo}
			}
			r.tx.head, r.tx.moved = !m.readOnly, true
			return answer{}
		})
	case stepCommit:
		commit()
		can(", which is answered and does not happen", func(_ *state, r *run) answer { r.tx = transaction{}; return answer{} })
	case stepThere, stepEnded:
		if next == stepEnded && s.blocker(&s.runs[number].tx, locksHead) != nil {
			can(", in vain", is(answer{said: saidNothing}))
			break
		}
		given := answer{said: saidNo}
		if s.written[s.runs[number].head.seq+1].by == me {
			given.said = saidYes
		}
		can("", is(given))
	case stepFence:
		can("", is(answer{fence: s.fence}))
	case stepRelease:
		can("", func(s *state, r *run) answer {
			if s.holder == me {
				s.holder = nobody
			}
			return answer{}
		})
	}
	return all
}

// events are what happens without a run doing it.
func (m *model) events(s *state) (all []outcome) {
	to := func(who int8, what string, do func(*state)) {
		to := *s
		do(&to)
		all = append(all, outcome{event{what: what, to: who}, to})
	}
	can := func(what string, do func(*state)) { to(0, what, do) }
	for i := range s.runs {
		r, me := s.runs[i], first+int8(i)
		if r.phase == done || r.phase == stopped {
			continue
		}
		if r != (run{}) {
			to(me, "run # is killed and started again", func(s *state) { s.again(i) })
		}
	}
	if s.sent.run != 0 {
		to(s.sent.run, "the COMMIT that run # sent arrives", func(s *state) { s.end(&s.sent, true) })
		to(s.sent.run, "the server rolls back what run # left", func(s *state) { s.end(&s.sent, false) })
	}
	if len(s.transactions()) > 0 {
		can("the server is killed and started again", func(s *state) {
			s.sent = transaction{}
			for i := range s.runs {
				if r := &s.runs[i]; r.tx.run != 0 {
					s.cut(r, false)
				}
			}
		})
	}
	if len(s.transactions()) == 0 && !s.damaged && s.backup != 0 && s.head.seq > 1 {
		can("somebody puts an old backup of the record beside the newer table", func(s *state) {
			s.damaged = true
			s.fence, s.head = s.backup, version{1, 1}
			for seq := 2; seq <= batches; seq++ {
				s.written[seq] = manifest{}
			}
			if s.holder != nobody {
				s.holder = ended // whoever held it when the backup was made
			}
		})
	}
	return all
}

// faults says what is wrong with a state, and with a step that led to it; "" when nothing is.
func faults(before, s *state) string {
	if before.row.there && (!s.row.there || s.row.seq < before.row.seq) {
		return "a row was overwritten by an older change"
	}
	if s.written != before.written && s.head.seq <= before.head.seq && s.damaged == before.damaged {
		if !onlyBy(before, s) {
			return "the head moved back, or a change was recorded beside it"
		}
	}
	var folds [batches]int8
	for seq := int8(1); seq <= batches; seq++ {
		w := s.written[seq]
		if (w != manifest{}) != (seq <= s.head.seq) {
			return fmt.Sprintf("the changes that are recorded are not those up to the head: %d", seq)
		}
		if seq > s.head.seq {
			break
		}
		if w.parent != seq-1 || seq > 1 && w.parentAge != s.written[seq-1].age {
			return fmt.Sprintf("change %d does not follow the one before it", seq)
		}
		folds[w.batch]++
		if folds[w.batch] > 1 {
			return fmt.Sprintf("batch %d was read twice", w.batch)
		}
	}
	if !s.damaged && (s.row.folds != folds || s.row.there != (s.head.seq > 0)) {
		return fmt.Sprintf("the table holds %v of the batches, the changes say %v", s.row.folds, folds)
	}
	return ""
}

// onlyBy: nothing differs in the changes but whose they are.
func onlyBy(before, s *state) bool {
	for seq := range s.written {
		a, b := before.written[seq], s.written[seq]
		if a.by, b.by = 0, 0; a != b {
			return false
		}
	}
	return true
}
