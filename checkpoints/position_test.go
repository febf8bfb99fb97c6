package checkpoints_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/checkpoints"
)

var ids = rapid.SampledFrom([]string{"a.csv", "b.csv", "2024/c.csv", "2024/ü.csv", "", "partition 0"})

var times = rapid.SampledFrom([]checkpoints.Times{{}, {Some: true}, {Some: true, Min: -5, Max: 7}, {Some: true, Min: 3, Max: 3}})

func splits() *rapid.Generator[checkpoints.Splits] {
	return rapid.Custom(func(t *rapid.T) checkpoints.Splits {
		n := func(name string) int64 { return rapid.Int64Min(0).Draw(t, name) >> 8 }
		return checkpoints.Splits(rapid.MapOfN(ids, rapid.Custom(func(t *rapid.T) checkpoints.Split {
			return checkpoints.Split{Next: n("next"), Rows: n("rows"), Size: n("size"), ModTime: n("modtime"),
				Content: rapid.StringMatching(`[0-9a-f]{0,4}`).Draw(t, "content"), Seq: n("seq"), Times: times.Draw(t, "times")}
		}), 0, 6).Draw(t, "splits"))
	})
}

// TestPositionKeptIncrementally: a summary kept from the changes alone is that of the whole, and so is
// what the segments of the changes give back.
func TestPositionKeptIncrementally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := splits().Draw(t, "start")
		sum := now.Sum()
		segments := encode(t, nil, 1, now, nil)
		for seq := int64(2); seq < 6; seq++ {
			moved, gone := splits().Draw(t, "moved"), rapid.SliceOfN(ids, 0, 4).Draw(t, "gone")
			next := sum.After(now, moved, gone)
			before := now.Clone()
			now.Apply(moved, gone)
			if next != now.Sum() {
				t.Fatalf("from %v, moved %v, gone %v: kept as %v, is %v", before, moved, gone, next, now.Sum())
			}
			sum = next
			segments = encode(t, segments, seq, moved, gone)
		}
		back, err := checkpoints.DecodePosition(segments)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(back, now) {
			t.Fatalf("the segments give %v, want %v", back, now)
		}
		if err := (checkpoints.Position{"s": back}).Verify(map[string]checkpoints.PositionSum{"s": sum}); err != nil {
			t.Fatal(err)
		}
	})
}

func encode(t *rapid.T, list []checkpoints.Segment, seq int64, moved checkpoints.Splits, gone []string) []checkpoints.Segment {
	s, err := checkpoints.EncodePosition("s", seq, moved, gone)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		if len(moved)+len(gone) > 0 {
			t.Fatal("a change gave no segment")
		}
		return list
	}
	return append(list, *s)
}

func TestPositionSumCovers(t *testing.T) {
	base := checkpoints.Splits{"a": {Next: 1, Rows: 2, Size: 3, ModTime: 4, Content: "5", Seq: 6}}
	// What decides which rows were read is covered; what does not is not.
	covered := map[string]bool{"Next": true, "Rows": true, "Content": true, "Size": false, "ModTime": false, "Seq": false, "Times": false, "Lost": true}
	for i := range reflect.TypeFor[checkpoints.Split]().NumField() {
		split := base["a"]
		field := reflect.ValueOf(&split).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Struct:
			field.Set(reflect.ValueOf(checkpoints.Times{Some: true, Min: 1, Max: 2}))
		case reflect.Bool:
			field.SetBool(true)
		default:
			field.SetInt(99)
		}
		name := reflect.TypeFor[checkpoints.Split]().Field(i).Name
		want, known := covered[name]
		if !known {
			t.Errorf("nobody decided whether %s is covered", name)
		}
		if got := (checkpoints.Splits{"a": split}).Sum() != base.Sum(); got != want {
			t.Errorf("a change of %s shows: %v, want %v", name, got, want)
		}
	}
	if (checkpoints.Splits{"b": base["a"]}).Sum() == base.Sum() {
		t.Error("the name is not covered")
	}
}

func TestPositionVerify(t *testing.T) {
	good := checkpoints.Position{"orders": {"a": {Next: 5, Rows: 5}, "b": {Next: 7, Rows: 7}}, "stores": {}}
	sums := good.Sums()
	if err := good.Verify(sums); err != nil {
		t.Fatal(err)
	}
	sums["stores"] = checkpoints.PositionSum{} // of nothing, never computed
	if err := good.Verify(sums); err != nil {
		t.Fatal(err)
	}
	for say, wrong := range map[string]checkpoints.Position{
		"source orders: the position is missing; the manifest records 2 splits":   {},
		"source orders: the position has 1 splits, the manifest records 2":        {"orders": {"a": {Next: 5, Rows: 5}}},
		"source orders: the splits of the position count 13 rows read":            {"orders": {"a": {Next: 5, Rows: 5}, "b": {Next: 7, Rows: 8}}},
		"a split's offset, name or content is not what the manifest records":      {"orders": {"a": {Next: 5, Rows: 5}, "b": {Next: 8, Rows: 7}}},
		"source late: there is a position of 1 splits; the manifest records none": {"orders": good["orders"], "late": {"x": {}}},
	} {
		if err := wrong.Verify(sums); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("the error is %v, want %q", err, say)
		}
	}
}
