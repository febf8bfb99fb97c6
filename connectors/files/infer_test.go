package files

import (
	"testing"
)

func TestInfer(t *testing.T) {
	for _, c := range []struct {
		name, glob string
		files      map[string]string
		want       string
	}{
		{"plain", "in/orders/*.csv", map[string]string{
			"in/orders/a.csv": "id,Order Date,zip,amount,paid,ratio,at,big,note,order\n1,2024-01-01,01067,1.5,true,1e3,2024-01-01 10:00:00,99999999999999999999,,x\n",
			"in/orders/b.csv": "id,Order Date,zip,amount,paid,ratio,at,big,note,order\n2,2024-01-02,10115,22.25,false,0.5,2024-01-01 10:00,1,,\n",
			"in/orders/c.csv": "id,other\n1,2\n",
		}, `-- in/orders/c.csv has other columns: id, other
-- note is empty in all sampled rows
CREATE SOURCE orders (
  id BIGINT,
  "Order Date" DATE,
  zip VARCHAR,
  amount DECIMAL(18,2),
  paid BOOLEAN,
  ratio DOUBLE,
  "at" TIMESTAMP,
  big HUGEINT,
  note VARCHAR,
  "order" VARCHAR
) FROM 'in/orders/*.csv';
`},
		{"dialect", "in/x.csv", map[string]string{
			"in/x.csv": "exported\nby me\n'name';'day';'price'\n'M\xfcller; A';13/02/2024;1,50\n'x';14/02/2024;2\n",
		}, `-- price may be a DECIMAL, read with decimal_separator = ','; that could also be wrong, so it is left as text
CREATE SOURCE x (
  name VARCHAR,
  day DATE,
  price VARCHAR
) FROM 'in/x.csv' WITH (encoding = 'latin-1', delim = ';', quote = '''', skip = 2, dateformat = '%d/%m/%Y');
`},
		{"offsets", "in/2024-*.csv", map[string]string{
			"in/2024-01.csv": "all,some\n2024-01-01 10:00:00+01,2024-01-01 10:00:00\n",
			"in/2024-02.csv": "all,some\n2024-01-01T10:00:00Z,2024-01-01 10:00:00+01\n",
		}, `CREATE SOURCE "in" (
  "all" TIMESTAMPTZ,
  "some" VARCHAR
) FROM 'in/2024-*.csv';
`},
		{"ambiguous day", "in/x.csv", map[string]string{
			"in/x.csv": "day,n\n01/02/2024,1\n03/02/2024,2\n",
		}, `-- day may be a DATE, read with dateformat = '%d/%m/%Y'; that could also be wrong, so it is left as text
CREATE SOURCE x (
  day VARCHAR,
  n BIGINT
) FROM 'in/x.csv';
`},
		{"no header", "in/x.tsv", map[string]string{"in/x.tsv": "1\tx\n2\ty\n3\tz\n"}, `CREATE SOURCE x (
  column1 BIGINT,
  column2 VARCHAR
) FROM 'in/x.tsv' WITH (header = false);
`},
		{"packed", "in/x.csv.gz", map[string]string{"in/x.csv.gz": gzipOf("id;day\n1;2024-01-01\n2;2024-01-02\n")}, `CREATE SOURCE x (
  id BIGINT,
  day DATE
) FROM 'in/x.csv.gz' WITH (delim = ';');
`},
		{"json", "in/events/*.jsonl*", map[string]string{
			"in/events/a.jsonl": `{"id":1,"at":"2024-01-01T10:00:00Z","price":1.5,"zip":"01067","tags":["a"],"ok":true,"day":"2024-01-01","mixed":1,"none":null}
{"id":2,"at":"2024-01-01T10:00:00+02:00","price":2.25,"zip":"1","tags":[],"ok":false,"day":"2024-01-02","mixed":"x","ID":1,"late":1e3}`,
			"in/events/b.jsonl.gz": gzipOf(`{"id":99999999999999999999}` + "\n"),
		}, `-- the key "ID" is left out: it is empty or like "id" but for letter case
-- none is null in all sampled rows
CREATE SOURCE events (
  id HUGEINT,
  "at" TIMESTAMPTZ,
  price DECIMAL(18,2),
  zip VARCHAR,
  tags JSON,
  ok BOOLEAN,
  day DATE,
  mixed JSON,
  none VARCHAR,
  late DOUBLE
) FROM 'in/events/*.jsonl*';
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.glob)
			t.Chdir(w.dir)
			for name, text := range c.files {
				w.write(name, text)
			}
			got, err := Infer(t.Context(), w.eng, c.glob)
			w.must(err)
			if got != c.want {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func TestInferParquet(t *testing.T) {
	w := newWorld(t, "in/*.parquet")
	t.Chdir(w.dir)
	w.parquet("in/a.parquet", `SELECT 1::INTEGER AS id, 1.5::DECIMAL(12,2) AS "Total amount", [1] AS list`)
	got, err := Infer(t.Context(), w.eng, "in/*.parquet")
	w.must(err)
	if want := `CREATE SOURCE "in" (
  id INTEGER,
  "Total amount" DECIMAL(12,2),
  list INTEGER[]
) FROM 'in/*.parquet';
`; got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestInferFaults(t *testing.T) {
	w := newWorld(t, "")
	t.Chdir(w.dir)
	w.write("in/a.csv", "x")
	_, err := Infer(t.Context(), w.eng, "in/b*.csv")
	failed[dataError](t, err, "in/b*.csv: no file matches\n  check the pattern; names that start with . or _ or end in .tmp are left out")
	_, err = Infer(t.Context(), w.eng, "s3://b/*.csv")
	failed[Fault](t, err, "reading from s3:// is not built in\n  sync to a folder before each run and name that folder: aws s3 sync s3://BUCKET/FOLDER landing/")
	_, err = Infer(t.Context(), w.eng, "no/*.csv")
	failed[dataError](t, err, "no: there is no such folder\n  check the path; a folder without files is fine, a missing one is not")
}
