package postgres

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"time"
)

// found is what a search found.
type found struct {
	states, steps int
	wrong         string
	trace         []string // the shortest way there
}

type seen struct {
	from int32
	what int32
}

// explore visits every state that can be reached, nearest first, until one is wrong.
func (m *model) explore() found {
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	hash := func(s *state) [2]uint64 {
		return [2]uint64{maphash.Comparable(seeds[0], *s), maphash.Comparable(seeds[1], *s)}
	}
	// States that differ only in which run is which are one.
	digest := func(s state) [2]uint64 {
		a := hash(&s)
		s.swap()
		b := hash(&s)
		if b[0] < a[0] {
			return b
		}
		return a
	}
	names, number := []event{}, map[event]int32{}
	name := func(what event) int32 {
		n, ok := number[what]
		if !ok {
			n = int32(len(names))
			names, number[what] = append(names, what), n
		}
		return n
	}
	m.plays = map[run]played{}
	var start state
	index := map[[2]uint64]int32{digest(start): 0}
	visited := []seen{{-1, -1}}
	var into [][2]int32 // steps, to find out from where the end cannot be reached
	ends := map[int32]bool{}
	type queued struct {
		s  state
		at int32
	}
	result := found{}
	trace := func(at int32, last string) (all []string) {
		if last != "" {
			all = append(all, last)
		}
		for ; at > 0; at = visited[at].from {
			all = append(all, names[visited[at].what].String())
		}
		for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
			all[i], all[j] = all[j], all[i]
		}
		return all
	}
	for level := []queued{{start, 0}}; len(level) > 0; {
		var next []queued
		for _, q := range level {
			all := m.events(&q.s)
			for n := range int8(runs) {
				all = append(all, m.steps(&q.s, n)...)
			}
			if final(&q.s) {
				ends[q.at] = true
			}
			for _, o := range all {
				result.steps++
				wrong := ""
				for n := range int8(runs) {
					if w := m.settle(&o.to, n); w != "" {
						wrong = w
					}
				}
				if w := faults(&q.s, &o.to); w != "" {
					wrong = w
				}
				if wrong != "" {
					result.states, result.wrong, result.trace = len(visited), wrong, trace(q.at, o.what.String())
					return result
				}
				o.to.normal()
				d := digest(o.to)
				at, known := index[d]
				if !known {
					at = int32(len(visited))
					index[d] = at
					visited = append(visited, seen{q.at, name(o.what)})
					next = append(next, queued{o.to, at})
				}
				into = append(into, [2]int32{at, q.at})
			}
		}
		level = next
	}
	result.states = len(visited)
	if at := stuck(len(visited), into, ends); at >= 0 {
		result.wrong, result.trace = "the batches cannot all be done any more", trace(at, "")
	}
	return result
}

// final: both runs have ended, and rightly.
func final(s *state) bool {
	for _, r := range s.runs {
		if r.phase != done && !(r.phase == stopped && s.damaged) {
			return false
		}
	}
	return s.damaged || s.head.seq == batches
}

// stuck is the first state from which no end can be reached; -1 when there is none.
func stuck(states int, into [][2]int32, ends map[int32]bool) int32 {
	first := make([]int32, states+1)
	for _, e := range into {
		first[e[0]+1]++
	}
	for i := range states {
		first[i+1] += first[i]
	}
	from, fill := make([]int32, len(into)), append([]int32(nil), first...)
	for _, e := range into {
		from[fill[e[0]]] = e[1]
		fill[e[0]]++
	}
	reaches := make([]bool, states)
	var open []int32
	for at := range ends {
		reaches[at] = true
		open = append(open, at)
	}
	for len(open) > 0 {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		for _, f := range from[first[at]:first[at+1]] {
			if !reaches[f] {
				reaches[f] = true
				open = append(open, f)
			}
		}
	}
	for at, ok := range reaches {
		if !ok {
			return int32(at)
		}
	}
	return -1
}

// TestModel visits every state of the protocol, and then of protocols that lack a part of it: the search
// must find what that part is for.
func TestModel(t *testing.T) {
	start := time.Now()
	m := &model{rules: rulesOf(t, sql("advance"), mergeOf())}
	if m.rules != (rules{fence: true, seq: true, sha: true, guard: true, bumps: true, once: true}) {
		t.Errorf("the statements check %+v", m.rules)
	}
	all := m.explore()
	if all.wrong != "" {
		t.Fatalf("%s, after %d states:\n  %s", all.wrong, all.states, strings.Join(all.trace, "\n  "))
	}
	fmt.Printf("the protocol with %d runs and %d batches: %d states, %d steps, 0 wrong, in %.1f s\n", runs, batches, all.states, all.steps, time.Since(start).Seconds())
}

func TestModelMutants(t *testing.T) {
	without := func(text string, parts ...string) string {
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Fatalf("there is no %s in %s", p, text)
			}
			text = strings.ReplaceAll(text, p, "")
		}
		return text
	}
	here, gone := true, false
	advance, merge := sql("advance"), mergeOf()
	whole := rulesOf(t, advance, merge)
	with := func(change func(*rules)) rules { r := whole; change(&r); return r }
	for _, c := range []struct {
		without string
		m       model
		wrong   string
	}{
		{"the fence, when the head is moved", model{rules: rulesOf(t, without(advance, " AND fence = $9"), merge)}, "run 2 says that somebody edited the database, and nobody did"},
		{"writing the fence: it is only read", model{rules: with(func(r *rules) { r.readOnly = true })}, "run 1 says that somebody edited the database, and nobody did"},
		{"raising the fence", model{rules: with(func(r *rules) { r.bumps = false })}, "run 2 says that somebody edited the database, and nobody did"},
		{"looking for the change: an answer that is lost is a yes", model{rules: whole, mutant: mutant{believes: &here}}, "run 1 says that batch 0 is committed, and it is not"},
		{"looking for the change: an answer that is lost is a no", model{rules: whole, mutant: mutant{believes: &gone}}, "run 1 says that somebody edited the database, and nobody did"},
		{"looking for the change: an answer is trusted", model{rules: whole, mutant: mutant{trusts: true}}, "run 1 says that batch 0 is committed, and it is not"},
		{"waiting for the old session before looking", model{rules: whole, mutant: mutant{impatient: true}}, "run 1 says that somebody edited the database, and nobody did"},
		{"the guard on the rows", model{rules: rulesOf(t, advance, without(merge, ` AND t."_etl_seq" <= 5`))}, "a row was overwritten by an older change"},
		{"reading the head again after the lease was taken", model{rules: whole, mutant: mutant{oldHead: true}}, "run 2 says that somebody edited the database, and nobody did"},
		{"the parent of the head", model{rules: rulesOf(t, without(advance, " AND seq = $10", " AND coalesce(manifest_sha, '') = $11"), merge)}, "the changes that are recorded are not those up to the head"},
		{"asking whether it was taken over, when rows are not as they were", model{rules: whole, mutant: mutant{proud: true}}, "run 1 says that somebody edited the database, and nobody did"},
	} {
		t.Run(c.without, func(t *testing.T) {
			found := c.m.explore()
			if found.wrong == "" || !strings.Contains(found.wrong, c.wrong) {
				t.Fatalf("of a protocol without %s the search says %q", c.without, found.wrong)
			}
			t.Logf("%s, after %d states:\n  %s", found.wrong, found.states, strings.Join(found.trace, "\n  "))
		})
	}
}
