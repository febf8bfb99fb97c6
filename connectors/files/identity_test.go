package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/checkpoints"
	"lockstep/connectors"
)

const keepOriginal = "\n  files that were read must not change: restore the original, and put corrections or new rows in a new file"

// waysOn is what a message about a changed file of these tests ends with.
const waysOn = "; or go on:\n  etl backfill FILE --files in/a.csv    takes it as it is now\n" + without

const without = "  etl accept-loss FILE --source orders --split a.csv    keeps what the table has of it"

func TestChangedFile(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.take("1")
	w.write("in/a.csv", "id\n1\n2\n")
	fails[inputError](w, `source orders: in/a.csv: was changed after it was read: it has 7 bytes now, it had 5`+keepOriginal+
		"; if it was still being written, cut it back to 5 bytes, put what came later in a new file, and let files be written under a name that ends in .tmp and renamed when they are whole"+waysOn)
	w.write("in/a.csv", "id\n2\n")
	w.touch("in/a.csv", time.Unix(1_800_000_000, 0))
	fails[inputError](w, `source orders: in/a.csv: was changed after it was read: it has the same size, but other content`+keepOriginal+waysOn)
}

func TestTouchedFile(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.take("1")
	before := w.seen["a.csv"]
	at := time.Unix(1_800_000_000, 5)
	w.touch("in/a.csv", at)
	b, err := w.plan(connectors.Limit{})
	w.must(err)
	before.ModTime = at.UnixNano()
	if len(b.Ranges) != 0 || b.Waiting != 0 || b.Moved["a.csv"] != before {
		t.Fatalf("%+v", b)
	}
	w.take()
	if b, err = w.plan(connectors.Limit{}); err != nil || len(b.Moved) != 0 {
		t.Fatalf("%+v %v", b, err)
	}
}

// A file whose size and time are unchanged is not opened.
func TestUnchangedFileIsNotOpened(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.take("1")
	w.write("in/a.csv", "id\n7\n")
	w.take()
}

func TestRenamedFile(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.write("in/b.csv", "id\n1\n") // the same bytes
	w.write("in/c.csv", "id\n2\n")
	w.take("1", "1", "2")
	w.must(os.Rename(w.path("in/a.csv"), w.path("in/z.csv")))
	w.must(os.Rename(w.path("in/b.csv"), w.path("in/y.csv")))
	w.write("in/x.csv", "id\n3\n") // as large as the vanished ones
	w.write("in/copy.csv", "id\n2\n")
	b, err := w.plan(connectors.Limit{})
	w.must(err)
	if b.Moved["y.csv"].Content != w.seen["a.csv"].Content || len(b.Moved) != 2 || fmt.Sprint(b.Gone) != "[a.csv b.csv]" {
		t.Errorf("%+v", b)
	}
	w.take("2", "3") // a copy of a file that is still there is new
	w.take()
}

// A file with the bytes of one that is gone and another time of change is not taken for either.
func TestRepeatedFile(t *testing.T) {
	for _, repeats := range []string{"", "new", "renamed"} {
		w := newWorld(t, "in/*.csv", "id BIGINT")
		if repeats != "" {
			w = w.with("repeats", repeats)
		}
		w.write("in/day1.csv", "id\n1\n")
		w.write("in/empty1.csv", "id\n")
		w.take("1")
		w.must(os.Remove(w.path("in/day1.csv")))
		w.must(os.Remove(w.path("in/empty1.csv")))
		w.write("in/empty2.csv", "id\n") // has no rows to count twice
		w.write("in/day2.csv", "id\n1\n")
		later := time.Now().Add(time.Hour)
		w.must(os.Chtimes(w.path("in/day2.csv"), later, later))
		w.must(os.Chtimes(w.path("in/empty2.csv"), later, later))
		switch repeats {
		case "":
			_, err := w.plan(connectors.Limit{})
			failed[inputError](t, err, "source orders: in/day2.csv: has the bytes of day1.csv, which was read and is gone, but another time of change: "+
				"it may be that file under another name, or a new one\n  if it is the same file, give it its time back: touch -d 2023-11-14T22:13:20Z in/day2.csv; "+
				"if files of this source can repeat, write WITH (repeats = 'new')")
		case "new":
			w.take("1")
		case "renamed":
			w.take()
		}
	}
}

func TestMovedAwayFile(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.take("1")
	w.must(os.Remove(w.path("in/a.csv")))
	w.take()
	if _, kept := w.seen["a.csv"]; !kept {
		t.Error("its entry is gone")
	}
}

func TestPartlyReadFile(t *testing.T) {
	partly := func(t *testing.T) *world {
		w := newWorld(t, "in/*.parquet", "id BIGINT")
		w.parquet("in/a.parquet", "SELECT i AS id FROM range(5) t(i)")
		_, err := w.batch(connectors.Limit{Rows: 2})
		w.must(err)
		return w
	}
	t.Run("gone", func(t *testing.T) {
		w := partly(t)
		w.must(os.Remove(w.path("in/a.parquet")))
		fails[inputError](w, "source orders: in/a.parquet: is gone, but its rows 3 to 5 were not read yet\n  put the file back; under another name it is found by its content; or go on without it:\n"+strings.Replace(without, "a.csv", "a.parquet", 1))
	})
	t.Run("changed", func(t *testing.T) {
		w := partly(t)
		w.parquet("in/a.parquet", "SELECT i AS id FROM range(50) t(i)")
		_, err := w.batch(connectors.Limit{})
		if _, ok := err.(inputError); !ok || !strings.HasPrefix(err.Error(), "source orders: in/a.parquet: was changed after 2 of its 5 rows were read: it has ") {
			t.Fatal(err)
		}
	})
	t.Run("renamed", func(t *testing.T) {
		w := partly(t)
		w.must(os.Rename(w.path("in/a.parquet"), w.path("in/b.parquet")))
		w.take("2", "3", "4")
		if got := w.seen["b.parquet"]; len(w.seen) != 1 || got.Next != 5 || len(got.Content) != 32 {
			t.Errorf("%+v", w.seen)
		}
	})
	t.Run("touched", func(t *testing.T) {
		w := partly(t)
		w.touch("in/a.parquet", time.Unix(1_800_000_000, 0))
		w.take("2", "3", "4")
		w.take()
	})
}

func TestFileWrittenWhileRead(t *testing.T) {
	const want = "in/a.csv: was being written while it was read; nothing was committed\n  run again; to be safe write to a name that ends in .tmp, then rename"
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	b, err := w.plan(connectors.Limit{})
	w.must(err)

	w.write("in/a.csv", "id\n1\n2\n")
	_, _, err = w.read(b.Ranges)
	failed[dataError](t, err, want)

	if b, err = w.plan(connectors.Limit{}); err != nil {
		t.Fatal(err)
	}
	sc, err := w.source().Read(t.Context(), b.Ranges)
	w.must(err)
	defer sc.Close()
	w.write("in/a.csv", "id\n1\n2\n3\n")
	w.must(sc.Copy(t.Context(), "copied"))
	_, err = sc.Finish(t.Context(), "copied")
	failed[dataError](t, err, want)
}

// Recorded ranges can be read again, also after the file was touched, and only from the same bytes.
func TestReadRecordedRange(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	b, err := w.plan(connectors.Limit{})
	w.must(err)
	_, done, err := w.read(b.Ranges)
	w.must(err)
	w.touch("in/a.csv", time.Unix(1_800_000_000, 0))
	rows, again, err := w.read(done)
	w.must(err)
	same(t, rows, []string{"1"})
	if again[0].Next.Content != done[0].Next.Content || again[0].Rows != 1 {
		t.Errorf("%+v", again)
	}
	w.write("in/a.csv", "id\n2\n")
	w.touch("in/a.csv", time.Unix(1_800_000_000, 0))
	_, _, err = w.read(done)
	failed[inputError](t, err, "source orders: in/a.csv: was changed after it was read: it has the same size, but other content"+keepOriginal+waysOn)
	w.must(os.Remove(w.path("in/a.csv")))
	_, _, err = w.read(done)
	failed[inputError](t, err, "source orders: in/a.csv: is gone, but its rows are needed\n  put the file back; or go on without it:\n  etl backfill FILE --files in/a.csv    takes its rows out: it is gone")
}

func TestGlob(t *testing.T) {
	w := newWorld(t, "")
	for _, name := range []string{"a.csv", "b.txt", ".hidden.csv", "_part.csv", "c.csv.tmp", "sub/d.csv", "sub/deep/e.csv", "_tmp/f.csv", "sub/.x/g.csv", "{a}.csv", "ab.csv"} {
		w.write("in/"+name, "x")
	}
	w.must(os.Symlink("../a.csv", w.path("in/sub/link.csv")))
	w.must(os.Symlink("../sub", w.path("in/sub/loop")))
	w.must(os.Symlink("sub", w.path("in/linked")))
	for _, c := range []struct{ glob, want string }{
		{"in/*.csv", "a.csv ab.csv {a}.csv"},
		{"in/?.csv", "a.csv"},
		{"in/[a-b]*.csv", "a.csv ab.csv"},
		{"in/l*/*.csv", "linked/d.csv linked/link.csv"},
		{"in/{a}.csv", "{a}.csv"},
		{"in/*", "a.csv ab.csv b.txt {a}.csv"},
		{"in/none/../sub/*.csv", "d.csv link.csv"},
		{w.path("in/s*/*.csv"), "sub/d.csv sub/link.csv"},
		{"in/nothing*.csv", ""},
	} {
		found, err := newPattern(connectors.SourceSpec{From: c.glob, Base: w.dir}).list()
		w.must(err)
		var ids []string
		for _, f := range found {
			ids = append(ids, f.id)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: %s", c.glob, got)
		}
	}
}

// A link to what matches itself is a second name of the same rows.
func TestLinksToFilesThatAreReadThemselves(t *testing.T) {
	w := newWorld(t, "in/**/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.must(os.Symlink("a.csv", w.path("in/latest.csv")))
	const hint = "\n  remove the link, or give it a name that the pattern does not match"
	fails[dataError](w, "in/latest.csv: is a link to a.csv, which the pattern matches too: its rows would count twice"+hint)
	w.must(os.Remove(w.path("in/latest.csv")))
	w.write("in/sub/b.csv", "id\n2\n")
	w.must(os.Symlink("sub", w.path("in/linked")))
	w.take("1", "2") // ** does not follow links to folders
	w.spec.From = w.path("in/*/*.csv")
	w.src = nil
	fails[dataError](w, "in/linked/b.csv: is a link to sub/b.csv, which the pattern matches too: its rows would count twice"+hint)
}

func TestPathFaults(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	fails[dataError](w, "in: there is no such folder\n  check the path; a folder without files is fine, a missing one is not")
	w.must(os.MkdirAll(w.path("in/a.csv"), 0o755))
	fails[dataError](w, "in/a.csv: is a folder, but a file is expected\n"+
		"  the pattern matches its name: move it away, or give it another one; to read the files in it, let the pattern end in /* and their suffix")
	w.must(os.Remove(w.path("in/a.csv")))
	w.take()
	w.must(os.Symlink("nowhere", w.path("in/b.csv")))
	fails[dataError](w, "in/b.csv: is a link to a file that does not exist\n  remove the link or restore its file")
	w.must(os.Remove(w.path("in/b.csv")))

	w.write("other/c.csv", "id\n1\n")
	w.must(os.Symlink("../other/c.csv", w.path("in/c.csv")))
	// Refused also where DuckDB could read it, as in this test, and before anything of it is shown.
	fails[dataError](w, "in/c.csv: is a link to "+w.path("other/c.csv")+", which is outside of in\n  only files inside the source's folder are read: move the file there, or name the folder it is in")
}

func TestPlainPath(t *testing.T) {
	w := newWorld(t, "in/a.csv", "id BIGINT")
	w.must(os.MkdirAll(w.path("in"), 0o755))
	fails[dataError](w, "in/a.csv: there is no such file\n  check the path")
	w.write("in/a.csv", "id\n1\n")
	w.take("1")
	w.must(os.Remove(w.path("in/a.csv")))
	w.take()
}

func TestPrefix(t *testing.T) {
	for glob, want := range map[string]string{
		"in/*.csv": "/base/in", "in/a/**/x/*.csv": "/base/in/a", "/abs/x.csv": "/abs", "../y/*.csv": "/y", "*.csv": "/base", "/*.csv": "/", "x.csv": "/base",
	} {
		if got := Prefix(connectors.SourceSpec{From: glob, Base: "/base"}); got != filepath.FromSlash(want) {
			t.Errorf("%s: %s", glob, got)
		}
	}
}

// Of many files that were read none is opened: their content, which is not "x", is not looked at.
func TestManySeenFiles(t *testing.T) {
	w := newWorld(t, "in/**/*.csv", "id BIGINT")
	w.must(os.MkdirAll(w.path("in/a"), 0o755))
	for i := range 5000 {
		name := fmt.Sprintf("a/%04d.csv", i)
		w.write("in/"+name, "id\n1\n")
		w.seen[name] = checkpoints.Split{Next: 5, Rows: 1, Size: 5, ModTime: time.Unix(1_700_000_000, 0).UnixNano(), Content: "x"}
	}
	b, err := w.plan(connectors.Limit{})
	w.must(err)
	if b.Waiting != 0 || len(b.Moved) != 0 {
		t.Fatalf("%+v", b)
	}
}

// A folder in the place of a file is another fault when the file was read.
func TestFolderForAFile(t *testing.T) {
	w := newWorld(t, "in/*.csv", "id BIGINT")
	w.write("in/a.csv", "id\n1\n")
	w.take("1")
	w.must(os.Remove(w.path("in/a.csv")))
	w.must(os.Mkdir(w.path("in/a.csv"), 0o755))
	fails[inputError](w, "source orders: in/a.csv: is a folder now, and was a file when it was read\n  move the folder away; the file may stay away as well, when all of it was read")
	w.must(os.Remove(w.path("in/a.csv")))
	w.take()
}
