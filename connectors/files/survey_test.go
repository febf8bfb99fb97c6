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
	found, err := w.src.Survey(t.Context(), w.seen)
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
