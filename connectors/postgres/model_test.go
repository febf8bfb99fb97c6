package postgres

import (
	"regexp"
	"strings"
	"testing"

	"lockstep/connectors"
)

// This is a model of a server and of two runs that want to write three batches of one pipeline, of which a
// search visits every state (model_search_test.go). The runs do what connectors/protocol says, by its own
// code (model_run_test.go). What the statements check is read from their texts (rulesOf).
//
// The sink is a table of one row. What it holds is how often each batch was folded into it.
//
// What looks the same to everybody is one state. A lease can end at any time, and be renewed until it is
// taken; so whether it has ended is left open until somebody tries to take it. A run that hears that its lease
// ended rolls back and begins anew, as one that is killed. Of a connection that is cut before COMMIT is sent
// the server may learn late; meanwhile others wait, or lose patience as when theirs is cut.

const (
	batches = 3
	runs    = 2
	tries   = 2 // how often a run does a thing before its patience ends
)

// Whose the lease is.
const (
	nobody int8 = 0
	first  int8 = 1 // + number of the run
	ended  int8 = 9 // a run that died, or gave up
)

// state is everything: the database, its transactions, and the runs.
type state struct {
	holder  int8 // of the lease
	fence   int8 // of the pipeline
	head    version
	written [batches + 1]manifest // by seq, from 1
	row     row

	sent transaction // whose COMMIT is under way, and whose connection is cut
	runs [runs]run

	backup  int8 // the fence in a backup of the record, made when its seq was 1; 0: not yet
	damaged bool // that backup was put back, and the table was not
}

// version names a manifest. Two of one seq differ in age: whether they were written after the backup was put back.
type version struct{ seq, age int8 }

type manifest struct {
	age, parent, parentAge, batch int8
	by                            int8 // first + number of the run whose change at hand it is
}

type row struct {
	there bool
	seq   int8
	folds [batches]int8
}

// transaction is what an open one has locked and will write.
type transaction struct {
	run   int8 // first + number; 0: there is none
	older bool // of an earlier life of that run

	lease, head, key bool // locks: row of the lease, row of the pipeline, row of the sink
	fence            int8 // to be
	replaced         int8 // the run whose lease is taken
	row              row  // to be
	next             manifest
	recorded, moved  bool
}

// rules are what the statements check.
type rules struct {
	fence, seq, sha bool // of the head, by the one that moves it
	guard           bool // of the rows, by MERGE
	bumps           bool
	once            bool // a manifest of a seq
	readOnly        bool // the head is compared by a statement of its own that does not write: a mutant
}

// rulesOf reads them.
func rulesOf(t *testing.T, advance, merge string) rules {
	t.Helper()
	var r rules
	_, where, _ := strings.Cut(advance, "WHERE ")
	for _, check := range strings.Split(where, " AND ") {
		switch check {
		case "fence = $9":
			r.fence = true
		case "seq = $10":
			r.seq = true
		case "coalesce(manifest_sha, '') = $11":
			r.sha = true
		case "pipeline = $7", "incarnation = $8":
		default:
			t.Fatalf("the model knows no check %q", check)
		}
	}
	r.guard = strings.Count(merge, `WHEN MATCHED AND t."_etl_seq" <= 5 AND s._op = `) == 2
	r.bumps = strings.Contains(sql("bump-fence"), "SET fence = fence + 1,")
	manifests := regexp.MustCompile(`(?s)CREATE TABLE etl\.manifests \(.*?\);`).FindString(schemaSQL)
	r.once = strings.Contains(manifests, "PRIMARY KEY (pipeline, seq)")
	for name, has := range map[string]string{
		"take-lease":    "WHERE leases.expires_at <= clock_timestamp() OR leases.holder IN ($9::uuid, excluded.holder)", // enter
		"renew-lease":   "WHERE pipeline = $1 AND lane = 'live' AND holder = $2::uuid",                                  // renew
		"release-lease": "WHERE pipeline = $1 AND lane = 'live' AND holder = $2::uuid",                                  // release
		"confirm":       "WHERE pipeline = $1 AND seq = $2 AND attempt = $3::uuid",                                      // there
		"lock-pipeline": "FOR UPDATE",                                                                                   // there
	} {
		if !strings.HasSuffix(sql(name), has) {
			t.Fatalf("the statement %s is not what the model does: %s", name, sql(name))
		}
	}
	return r
}

// mergeOf is the statement for the model's sink, at seq 5.
func mergeOf() string {
	a := apply{seq: 5, staged: "s", target: "t", sink: connectors.SinkSpec{Columns: []connectors.SinkColumn{{Name: "n", Type: "BIGINT"}}}}
	return a.mergeSQL(nil)
}

// transactions are all that are open.
func (s *state) transactions() []*transaction {
	var all []*transaction
	for _, t := range []*transaction{&s.sent, &s.runs[0].tx, &s.runs[1].tx} {
		if t.run != 0 {
			all = append(all, t)
		}
	}
	return all
}

// blocker is another transaction for which a lock holds.
func (s *state) blocker(me *transaction, lock func(*transaction) bool) *transaction {
	for _, t := range s.transactions() {
		if t != me && lock(t) {
			return t
		}
	}
	return nil
}

func locksLease(t *transaction) bool { return t.lease }
func locksHead(t *transaction) bool  { return t.head }
func locksKey(t *transaction) bool   { return t.key }

// end is the end of a transaction.
func (s *state) end(t *transaction, commit bool) {
	if commit {
		me := t.run
		if t.older {
			me = ended
		}
		if t.lease {
			s.holder, s.fence = me, t.fence
		}
		if t.key {
			s.row = t.row
		}
		if t.recorded && t.moved {
			seq := t.next.parent + 1
			s.written[seq] = t.next
			s.head = version{seq, t.next.age}
			if seq == 1 && s.backup == 0 {
				s.backup = s.fence
			}
		}
	}
	*t = transaction{}
}

// cut is the loss of a run's connection, at a step that so has no other answer.
func (s *state) cut(r *run, sent bool) {
	if sent { // the row of the pipeline is locked, so there is no other one
		s.sent = r.tx
	}
	r.tx = transaction{}
	r.known[r.asked] = answer{said: saidLost}
	r.asked++
}

// again is a run that begins anew: after its process died, or after an error.
func (s *state) again(number int) {
	r, me := &s.runs[number], first+int8(number)
	*r = run{}
	if s.holder == me {
		s.holder = ended
	}
	for _, t := range s.transactions() {
		if t.run == me {
			t.older = true
		}
		if t.replaced == me {
			t.replaced = nobody
		}
	}
	s.past(me)
}

// past: the change at hand of a run is at hand no more.
func (s *state) past(me int8) {
	for i := range s.written {
		if s.written[i].by == me {
			s.written[i].by = 0
		}
	}
	for _, t := range s.transactions() {
		if t.next.by == me {
			t.next.by = 0
		}
	}
}

// swap makes each run the other one.
func (s *state) swap() {
	other := func(who *int8) {
		if *who == first || *who == first+1 {
			*who = 2*first + 1 - *who
		}
	}
	s.runs[0], s.runs[1] = s.runs[1], s.runs[0]
	other(&s.holder)
	for i := range s.written {
		other(&s.written[i].by)
	}
	for _, t := range []*transaction{&s.sent, &s.runs[0].tx, &s.runs[1].tx} {
		other(&t.run)
		other(&t.replaced)
		other(&t.next.by)
	}
	for i := range s.runs {
		for j := range s.runs[i].known {
			other(&s.runs[i].known[j].who)
		}
	}
}

// normal makes equal what differs only in numbers that mean nothing: fences count up for ever, but what
// counts of them is which is the newest, and, when an older one may come back with a backup, which follow
// on that.
func (s *state) normal() {
	var fences []*int8
	oldest := s.fence
	if s.backup != 0 && !s.damaged {
		oldest = min(oldest, s.backup)
	} else {
		s.backup = min(s.backup, 1)
	}
	add := func(f *int8) {
		if *f != 0 && *f < oldest {
			*f = max(oldest-1, 1)
		}
		if *f != 0 {
			fences = append(fences, f)
		}
	}
	add(&s.fence)
	if s.backup != 0 && !s.damaged {
		add(&s.backup)
	}
	add(&s.sent.fence)
	for i := range s.runs {
		r := &s.runs[i]
		add(&r.fence)
		add(&r.tx.fence)
		for j := range r.known {
			add(&r.known[j].fence)
		}
	}
	var last, to int8
	for {
		least := int8(127)
		for _, f := range fences {
			if *f > 0 && *f > last && *f < least {
				least = *f
			}
		}
		if least == 127 {
			break
		}
		to += min(least-last, 2)
		for _, f := range fences {
			if *f == least {
				*f = -to // not to be taken for one that is still to come
			}
		}
		last = least
	}
	for _, f := range fences {
		*f = -*f
	}
}
