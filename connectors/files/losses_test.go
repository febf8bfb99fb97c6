package files

import (
	"maps"
	"os"
	"slices"
	"testing"

	"lockstep/connectors"
)

// accept takes all losses that a run would stop at into the position.
func (w *world) accept() []connectors.Loss {
	w.t.Helper()
	lost, err := w.src.Losses(w.t.Context(), w.seen)
	w.must(err)
	lost = slices.DeleteFunc(lost, func(l connectors.Loss) bool { return l.Reason == "" })
	for _, l := range lost {
		w.seen[l.Split] = l.Next
	}
	return lost
}

func TestLossOfChangedFile(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.write("in/b.csv", "id\n2\n")
	w.take("1", "2")
	if lost := w.accept(); len(lost) != 0 {
		t.Fatalf("%+v is lost", lost)
	}
	was := maps.Clone(w.seen)
	w.write("in/a.csv", "id\n1\n7\n")
	lost := w.accept()
	if len(lost) != 1 || lost[0].Split != "a.csv" || lost[0].Reason != "was changed after it was read: it has 7 bytes now, it had 5" || lost[0].Unread != 0 {
		t.Fatalf("%+v", lost)
	}
	if e := lost[0].Next; e.Rows != 1 || e.Next != was["a.csv"].Next || e.Size != 7 || !e.Lost || e.Content == was["a.csv"].Content {
		t.Fatalf("%+v", e)
	}
	w.take() // neither its old nor its new rows
	w.write("in/c.csv", "id\n3\n")
	w.take("3")
	_, err := w.src.Read(t.Context(), []connectors.Range{{Split: "a.csv", To: 5, Rows: 1, Next: w.seen["a.csv"]}})
	failed[inputError](t, err, "source orders: in/a.csv: what was read of it is lost, as was accepted, and cannot be read again\n"+
		"  the table keeps its rows, but nothing tells what they should be\n  etl backfill FILE --files in/a.csv    takes it as it is now")

	// It is known that it was accepted.
	again, err := w.src.Losses(t.Context(), w.seen)
	w.must(err)
	if len(again) != 1 || !again[0].Accepted || again[0].Reason != "" || again[0].Shown != "in/a.csv" || again[0].Next != w.seen["a.csv"] {
		t.Fatalf("%+v", again)
	}

	// A backfill may take it as it is.
	found, err := w.src.Survey(t.Context(), w.seen, nil)
	w.must(err)
	if found[0].State != connectors.StandsChanged || found[0].Now.To != 7 {
		t.Fatalf("%+v", found[0])
	}
	// Renamed it stays what it is; changed again it stops again.
	w.must(os.Rename(w.path("in/a.csv"), w.path("in/z.csv")))
	w.take()
	if !w.seen["z.csv"].Lost {
		t.Fatalf("%+v", w.seen)
	}
	w.write("in/z.csv", "")
	if _, err := w.batch(connectors.Limit{}); err == nil {
		t.Fatal("a file that was changed after its loss was accepted is read on")
	}
	if lost := w.accept(); len(lost) != 1 || lost[0].Next.Size != 0 || !lost[0].Accepted {
		t.Fatalf("%+v", lost)
	}
	w.take()
}

func TestLossOfUnreadRows(t *testing.T) {
	partly := func(t *testing.T) *world {
		w := newWorld(t, "in/*.parquet", "id BIGINT")
		w.parquet("in/a.parquet", "SELECT i AS id FROM range(5) t(i)")
		_, err := w.batch(connectors.Limit{Rows: 2})
		w.must(err)
		return w
	}
	t.Run("gone", func(t *testing.T) {
		w := partly(t)
		was := w.seen["a.parquet"]
		w.must(os.Rename(w.path("in/a.parquet"), w.path("aside")))
		lost := w.accept()
		if len(lost) != 1 || lost[0].Reason != "is gone, but its rows 3 to 5 were not read yet" || lost[0].Unread != 3 || lost[0].Next.Rows != 2 {
			t.Fatalf("%+v", lost)
		}
		w.take()
		looked, err := w.src.Look(t.Context(), w.seen)
		w.must(err)
		if len(looked) != 1 || looked[0].State != StateGivenUp {
			t.Fatalf("%+v", looked)
		}
		w.must(os.Rename(w.path("aside"), w.path("in/a.parquet"))) // too late
		w.take()
		if w.seen["a.parquet"].Content != identityOf(was.Content).hash {
			t.Fatalf("%+v", w.seen)
		}
	})
	t.Run("changed", func(t *testing.T) {
		w := partly(t)
		w.parquet("in/a.parquet", "SELECT i AS id FROM range(50) t(i)")
		lost := w.accept()
		if len(lost) != 1 || lost[0].Unread != 3 {
			t.Fatalf("%+v", lost)
		}
		w.take()
	})
}
