package checkpoints_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"lockstep/checkpoints"
)

func manifest() checkpoints.Manifest {
	return checkpoints.Manifest{
		Pipeline: "daily_sales", Seq: 3, Incarnation: 1, Batch: 2, Attempt: uuid.NewString(), Kind: checkpoints.KindBatch,
		ParentSeq: 2, ParentSHA: "ab", PlanID: "7f3a", Env: checkpoints.Env{Engine: "0.1", DuckDB: "v1.5.6", TimeZone: "UTC"},
		BatchTime: time.Date(2024, 5, 5, 23, 58, 0, 123456000, time.UTC),
		Position:  map[string]checkpoints.PositionSum{"orders": {Splits: 3, Hash: checkpoints.Digest{}.String(), Rows: 30}, "a<b>&c": {}},
		Sources:   map[string]checkpoints.SourceCount{"orders": {Splits: 2, Read: 20, Accepted: 17, Rejected: 3}},
		Sinks:     map[string]checkpoints.SinkCount{"mart.daily_sales": {Inserted: 1, Updated: 2, Deleted: 3, Rows: 9007199254740993}},
		RangesSHA: checkpoints.RangesSHA(nil),
		Live:      checkpoints.SumLive(nil),
	}
}

// leaves calls fn with a setter for every value inside v, and its path.
func leaves(v reflect.Value, path string, fn func(path string, change func())) {
	switch v.Kind() {
	case reflect.String:
		fn(path, func() { v.SetString(v.String() + "x") })
	case reflect.Int, reflect.Int64:
		fn(path, func() { v.SetInt(v.Int() + 1) })
	case reflect.Map:
		for _, key := range v.MapKeys() {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			leaves(elem, path+"["+key.String()+"]", func(path string, change func()) {
				fn(path, func() { change(); v.SetMapIndex(key, elem) })
			})
			fn(path+"["+key.String()+"] gone", func() { v.SetMapIndex(key, reflect.Value{}) })
		}
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			fn(path, func() { v.Set(reflect.ValueOf(at.Add(time.Microsecond))) })
			return
		}
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, fn)
		}
	default:
		panic("a kind of field that this test does not know: " + v.Kind().String())
	}
}

func TestChecksumCoversEveryField(t *testing.T) {
	// One manifest per leaf: a changed one is not used again.
	attempt, n := uuid.NewString(), 0
	fresh := func() checkpoints.Manifest { m := manifest(); m.Attempt = attempt; return m }
	base := fresh()
	var paths []string
	leaves(reflect.ValueOf(&base).Elem(), "", func(path string, _ func()) { paths = append(paths, path) })
	seen := map[string]string{base.Checksum(): "the manifest itself"}
	for _, want := range paths {
		m := fresh()
		leaves(reflect.ValueOf(&m).Elem(), "", func(path string, change func()) {
			if path == want {
				change()
				n++
			}
		})
		sum := m.Checksum()
		if other, ok := seen[sum]; ok {
			t.Errorf("a change of %s gives the checksum of %s", want, other)
		}
		seen[sum] = want
	}
	if n != len(paths) || n < 25 {
		t.Errorf("%d of %d values were changed", n, len(paths))
	}
}

// TestChecksumIsStable: what is stored in databases must not change with the code.
func TestChecksumIsStable(t *testing.T) {
	m := manifest()
	m.Attempt = "0190a7b2-0000-7000-8000-000000000000"
	const want = "254a2ec26e303de0f9a4d5c29ae7ad9f488f18f9bd58a5ca10466dea889dda10" // computed from the documented form, by other code
	if got := m.Checksum(); got != want {
		t.Errorf("the checksum is %s, was %s", got, want)
	}
	berlin := time.FixedZone("", 2*60*60)
	m.BatchTime = m.BatchTime.In(berlin)
	if m.Checksum() != want {
		t.Error("the checksum depends on the time zone")
	}
	var empty, none checkpoints.Manifest
	empty.Sinks = map[string]checkpoints.SinkCount{}
	if empty.Checksum() != none.Checksum() {
		t.Error("no map and an empty map differ")
	}
}

func TestManifestRoundTrips(t *testing.T) {
	m := manifest()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back checkpoints.Manifest
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m, back) || m.Checksum() != back.Checksum() {
		t.Errorf("as JSON it comes back as %+v", back)
	}
	stored := m
	stored.Env, stored.Position, stored.Sources, stored.Sinks = checkpoints.Env{}, nil, nil, nil
	if err := stored.SetTexts(m.Texts()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m, stored) {
		t.Errorf("as texts it comes back as %+v", stored)
	}
	if err := stored.SetTexts(checkpoints.Texts{Env: "{}", Position: "{", Counts: "{}"}); err == nil || !strings.Contains(err.Error(), "position") {
		t.Errorf("of damaged texts the error is %v", err)
	}
}

func TestManifestCheck(t *testing.T) {
	if err := manifest().Check(); err != nil {
		t.Fatal(err)
	}
	count := func(read, accepted, rejected int64) func(*checkpoints.Manifest) {
		return func(m *checkpoints.Manifest) {
			m.Sources["orders"] = checkpoints.SourceCount{Splits: 1, Read: read, Accepted: accepted, Rejected: rejected}
		}
	}
	sink := func(c checkpoints.SinkCount) func(*checkpoints.Manifest) {
		return func(m *checkpoints.Manifest) { m.Sinks["s"] = c }
	}
	for say, spoil := range map[string]func(*checkpoints.Manifest){
		"is not the name of a pipeline":                func(m *checkpoints.Manifest) { m.Pipeline = "a\xff" },
		"seq is 0":                                     func(m *checkpoints.Manifest) { m.Seq, m.ParentSeq, m.ParentSHA = 0, -1, "" },
		"it follows seq 1":                             func(m *checkpoints.Manifest) { m.ParentSeq = 1 },
		"no parent's checksum":                         func(m *checkpoints.Manifest) { m.ParentSHA = "" },
		"incarnation is 0":                             func(m *checkpoints.Manifest) { m.Incarnation = 0 },
		"batch -1":                                     func(m *checkpoints.Manifest) { m.Batch = -1 },
		"batch 3 cannot be at seq 3":                   func(m *checkpoints.Manifest) { m.Batch = 3 },
		"attempt":                                      func(m *checkpoints.Manifest) { m.Attempt = "first" },
		"not a kind of change":                         func(m *checkpoints.Manifest) { m.Kind = "" },
		"it names no plan":                             func(m *checkpoints.Manifest) { m.PlanID = "" },
		"it has no time":                               func(m *checkpoints.Manifest) { m.BatchTime = time.Time{} },
		"finer than a microsecond":                     func(m *checkpoints.Manifest) { m.BatchTime = m.BatchTime.Add(1) },
		"no checksum of its ranges":                    func(m *checkpoints.Manifest) { m.RangesSHA = "" },
		"no sum of its live segments":                  func(m *checkpoints.Manifest) { m.Live.Digest = "" },
		"a compaction changes no table":                func(m *checkpoints.Manifest) { m.Kind = checkpoints.KindCompaction },
		"20 rows were read, but 20 accepted and 1 rej": count(20, 20, 1),
		"source orders: a count is negative":           count(20, 21, -1),
		"there is no position":                         func(m *checkpoints.Manifest) { delete(m.Position, "orders") },
		"not 32 hex digits":                            func(m *checkpoints.Manifest) { m.Position["orders"] = checkpoints.PositionSum{Hash: "x"} },
		"the position has -1 splits":                   func(m *checkpoints.Manifest) { m.Position["orders"] = checkpoints.PositionSum{Splits: -1} },
		"sink s: a count is negative":                  sink(checkpoints.SinkCount{Deleted: -1}),
		"2 rows were written, but the table has 1":     sink(checkpoints.SinkCount{Inserted: 1, Updated: 1, Rows: 1}),
		"sink s: digest":                               sink(checkpoints.SinkCount{Digest: "x"}),
	} {
		m := manifest()
		spoil(&m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("the error is %v, want %q", err, say)
		}
	}
}

func TestCheckRanges(t *testing.T) {
	r := func(split string, from, to, rows int64) checkpoints.Range {
		return checkpoints.Range{Source: "orders", Split: split, From: from, To: to, Rows: rows}
	}
	good := []checkpoints.Range{r("b", 5, 15, 8), r("a", 10, 20, 7), r("a", 0, 10, 5)}
	m := manifest()
	m.RangesSHA = checkpoints.RangesSHA(good)
	if err := checkpoints.CheckRanges(good, m); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for _, change := range []func(*checkpoints.Range){
			func(r *checkpoints.Range) { r.Split += "x" },
			func(r *checkpoints.Range) { r.To++ },
			func(r *checkpoints.Range) { r.Content = "other" },
		} {
			changed := slices.Clone(good)
			change(&changed[i])
			if err := checkpoints.CheckRanges(changed, m); err == nil {
				t.Errorf("a changed range passed: %+v", changed[i])
			}
		}
	}
	for say, wrong := range map[string][]checkpoints.Range{
		"20 rows of 2 splits are counted, its ranges hold 19 rows of 2 splits": {r("a", 0, 10, 10), r("b", 0, 10, 9)},
		"its ranges hold 0 rows of 0 splits":                                   nil,
		"its ranges hold 20 rows of 1 splits":                                  {r("a", 0, 20, 20)},
		"orders: a: offsets from 9 to 10 are in two ranges":                    {r("a", 9, 20, 10), r("a", 0, 10, 5), r("b", 0, 5, 5)},
		"offsets [5, 4) with 1 rows are not a range":                           {r("a", 5, 4, 1)},
		"offsets [-1, 4) with 1 rows are not a range":                          {r("a", -1, 4, 1)},
		"offsets [0, 4) with -1 rows are not a range":                          {r("a", 0, 4, -1)},
		"is not valid UTF-8":                                                   {r("a\xff", 0, 4, 1)},
		"source stores: ranges were read that are not counted":                 append([]checkpoints.Range{{Source: "stores", Split: "x", To: 1}}, good...),
	} {
		if err := checkpoints.CheckRanges(wrong, manifest()); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("the error is %v, want %q", err, say)
		}
	}
}

func TestSumLive(t *testing.T) {
	a := checkpoints.Segment{ID: "1", Step: "s", Level: 2, SeqLo: 3, SeqHi: 4, Rows: 5, Bytes: 6, Schema: "7", SHA256: "8"}
	b := checkpoints.Segment{ID: "2", Step: "s"}
	both := checkpoints.SumLive([]checkpoints.Segment{a, b})
	if both != checkpoints.SumLive([]checkpoints.Segment{b, a}) {
		t.Error("the order matters")
	}
	if kept := checkpoints.SumLive(nil).After([]*checkpoints.Segment{&a, &b}, nil); kept != both {
		t.Errorf("kept incrementally it is %v, all at once %v", kept, both)
	}
	base := checkpoints.SumLive([]checkpoints.Segment{a})
	if both.After(nil, []checkpoints.Segment{b}) != base {
		t.Error("a removed segment leaves a trace")
	}
	for i := range reflect.TypeFor[checkpoints.Segment]().NumField() {
		c := a
		field := reflect.ValueOf(&c).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Int, reflect.Int64:
			field.SetInt(99)
		default:
			continue // the parts, which the SHA-256 covers
		}
		if checkpoints.SumLive([]checkpoints.Segment{c}) == base {
			t.Errorf("the sum does not cover %s", reflect.TypeFor[checkpoints.Segment]().Field(i).Name)
		}
	}
}
