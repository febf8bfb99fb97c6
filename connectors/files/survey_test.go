package files

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"lockstep/connectors"
)

// A survey goes on where a plan stops, and gives what is there now as new input.
func TestSurvey(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	for _, name := range []string{"same", "touched", "replaced", "gone", "renamed"} {
		w.write("in/"+name+".csv", "id\n"+fmt.Sprint(len(name))+"\n")
	}
	w.take("4", "7", "8", "4", "7")
	w.touch("in/touched.csv", time.Unix(1_800_000_000, 5))
	w.write("in/replaced.csv", "id\n1\n2\n")
	w.must(os.Remove(w.path("in/gone.csv")))
	w.must(os.Rename(w.path("in/renamed.csv"), w.path("in/another.csv")))
	w.write("in/new.csv", "id\n3\n")
	found, err := w.src.Survey(t.Context(), w.seen, nil)
	w.must(err)
	var got []string
	for _, st := range found {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", st.Split, st.State, st.Now.To, st.Moved)))
	}
	want := "another.csv same 0 renamed.csv, gone.csv gone 0, new.csv new 5, replaced.csv changed 7, same.csv same 0, touched.csv same 0"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
	}
	for _, st := range found {
		if st.State != connectors.StandsChanged {
			continue
		}
		scan, err := w.src.Read(t.Context(), []connectors.Range{st.Now})
		w.must(err)
		w.must(scan.Copy(t.Context(), "rows"))
		ranges, err := scan.Finish(t.Context(), "rows")
		w.must(err)
		if ranges[0].Rows != 2 || ranges[0].Next.Content == w.seen["replaced.csv"].Content {
			t.Errorf("%+v", ranges)
		}
		w.must(scan.Close())
	}
}

// A file that keeps its size and its time of change is told from the one that was read by its bytes, when it is
// asked for.
func TestSurveyReadsWhatIsNamed(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	at := time.Unix(1_800_000_000, 5)
	for _, name := range []string{"a", "b", "c"} {
		w.write("in/"+name+".csv", "id\n1\n")
		w.touch("in/"+name+".csv", at)
	}
	w.take("1", "1", "1")
	for _, name := range []string{"b", "c"} {
		w.write("in/"+name+".csv", "id\n2\n")
		w.touch("in/"+name+".csv", at)
	}
	states := func(named func(connectors.Standing) bool) string {
		found, err := w.src.Survey(t.Context(), w.seen, named)
		w.must(err)
		var out []string
		for _, st := range found {
			out = append(out, st.State)
			if st.State == connectors.StandsSame && st.Was != w.seen[st.Split] {
				t.Errorf("%s was %+v, and is %+v", st.Split, w.seen[st.Split], st.Was)
			}
		}
		return strings.Join(out, " ")
	}
	if got := states(nil); got != "same same same" {
		t.Error(got)
	}
	if got := states(func(st connectors.Standing) bool { return st.Split == "a.csv" || st.Shown == "in/b.csv" }); got != "same changed same" {
		t.Error(got)
	}
}
