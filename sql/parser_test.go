package sql

import (
	"strings"
	"testing"
)

// The example of docs: every statement an analyst writes on the first day.
const dailySales = `
-- daily_sales.sql
ATTACH 'mart.duckdb' AS mart;                        -- or: ATTACH getenv('MART_DSN') AS mart (TYPE postgres);

CREATE SOURCE orders (
  order_id   BIGINT NOT NULL,
  ordered_at TIMESTAMPTZ NOT NULL,
  store      VARCHAR,
  amount     DECIMAL(12,2),
  file       VARCHAR METADATA FROM 'filename',
  WATERMARK FOR ordered_at AS ordered_at - INTERVAL '2 days',
  CONSTRAINT amount_ok CHECK (amount >= 0) ON VIOLATION REJECT
) FROM 'landing/orders/*.csv';

CREATE SINK mart.daily_sales PRIMARY KEY (day, store) AS
SELECT (ordered_at AT TIME ZONE 'Europe/Berlin')::DATE AS day, store, count(*) AS orders, sum(amount) AS revenue
FROM orders
GROUP BY ALL;
`

// everything uses each clause of the grammar once.
const everything = `
CREATE PIPELINE "Daily Sales" WITH (owner = 'finance');
ATTACH getenv('MART_DSN', 'host=localhost') || ' dbname=mart' AS mart (TYPE postgres);
attach $$crm.duckdb$$ as crm (type DuckDB);
SET VARIABLE since = DATE '2024-01-01' - INTERVAL 1 DAY; -- constant
CREATE SOURCE orders (
  id BIGINT NOT NULL,
  "order" VARCHAR,
  tags STRUCT(a INT, b VARCHAR[])[] ,
  seen TIMESTAMP(3) WITH TIME ZONE,
  p DOUBLE PRECISION NOT NULL,
  grid INTEGER[3][] /* rows */,
  u UNION(num INT, s VARCHAR),
  mood main."my mood",
  watermark INT,
  net DECIMAL(12,2) AS ( round(gross / 1.19, 2) ),
  filename VARCHAR METADATA,
  line BIGINT METADATA FROM 'file_row_number',
  PRIMARY KEY (id, "order"),
  WATERMARK FOR seen AS seen - (INTERVAL '1 day', 2)[1],
  CHECK (net > 0),
  CONSTRAINT small CHECK (net < 1e6) ON VIOLATION FAIL
) FROM getenv('LANDING') || '/orders/*.csv'
  ENVELOPE DEBEZIUM SEQUENCE BY (seen, f(a, b)) DELETE WHEN (op = 'd')
  WITH (files = 'replace', header = TRUE, skip = -1, nullstr = null, delim = E'\t', "max rejects" = 1.5e3);
CREATE SOURCE customers FROM crm.public.customers ENVELOPE NONE;
CREATE VIEW big AS WITH x AS (SELECT ';' AS a /* ; */) FROM x -- ;
;
CREATE SINK mart.sales.totals PRIMARY KEY () EMIT FINAL WITH (recompute = true) AS
(SELECT count(*) FROM orders) -- the end
;
CREATE TEST t FOR totals AS GIVEN orders (VALUES (1)) EXPECT (VALUES (1));
CREATE AUDIT a FOR totals ON VIOLATION WARN AS SELECT 1`

func mustParse(t *testing.T, text string) *Script {
	t.Helper()
	s, err := Parse("dir/test.SQL", text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestDailySales(t *testing.T) {
	s := mustParse(t, dailySales)
	equal(t, "name", s.Name, "test")
	equal(t, "database", s.Attaches[0].Name.Text, "mart")
	src := s.Sources[0]
	equal(t, "columns", len(src.Columns), 5)
	equal(t, "type", src.Columns[3].Type.Text, "DECIMAL(12,2)")
	equal(t, "not null", src.Columns[1].NotNull && !src.Columns[2].NotNull, true)
	equal(t, "watermark", src.Watermark.Expr.Text, "ordered_at - INTERVAL '2 days'")
	equal(t, "check", src.Checks[0].Expr.Text, "amount >= 0")
	equal(t, "from", src.From.String(), "'landing/orders/*.csv'")
	equal(t, "head", s.Text[src.Head.Start:src.Head.End], "CREATE SOURCE orders")
	sink := s.Sinks[0]
	equal(t, "sink", sink.Name.String(), "mart.daily_sales")
	equal(t, "key", sink.Key[0].Text+" "+sink.Key[1].Text, "day store")
	equal(t, "select", strings.HasPrefix(sink.Select.Text, "SELECT (ordered_at AT") && strings.HasSuffix(sink.Select.Text, "\nGROUP BY ALL"), true)
	equal(t, "unsupported", len(s.Unsupported()), 0)
}

func TestEverything(t *testing.T) {
	s := mustParse(t, everything)
	equal(t, "structure", "\n"+structure(s), `
pipeline Daily Sales owner='finance'
attach mart postgres getenv('MART_DSN', 'host=localhost') || ' dbname=mart'
attach crm duckdb 'crm.duckdb'
variable since = DATE '2024-01-01' - INTERVAL 1 DAY
source orders DEBEZIUM from getenv('LANDING') || '/orders/*.csv'
 column id BIGINT 0 true
 column order VARCHAR 0 false
 column tags STRUCT ( a INT , b VARCHAR [ ] ) [ ] 0 false
 column seen TIMESTAMP ( 3 ) WITH TIME ZONE 0 false
 column p DOUBLE PRECISION 0 true
 column grid INTEGER [ 3 ] [ ] 0 false
 column u UNION ( num INT , s VARCHAR ) 0 false
 column mood main . "my mood" 0 false
 column watermark INT 0 false
 column net DECIMAL ( 12 , 2 ) 1 false round ( gross / 1.19 , 2 )
 column filename VARCHAR 2 false filename
 column line BIGINT 2 false file_row_number
 key id
 key order
 watermark seen seen - ( INTERVAL '1 day' , 2 ) [ 1 ]
 check  net > 0 false
 check small net < 1e6 true
 sequence seen
 sequence f ( a , b )
 delete op = 'd'
 files='replace' header=TRUE skip=- 1 nullstr=null delim='	' max rejects=1.5e3
source customers NONE from crm.public.customers
view big WITH x AS ( SELECT ';' AS a ) FROM x
sink mart.sales.totals true ( SELECT count ( * ) FROM orders ) recompute=true
CREATE TEST t
CREATE AUDIT a
`)
	equal(t, "statement", s.Text[s.Views[0].Span.Start:s.Views[0].Span.End], "CREATE VIEW big AS WITH x AS (SELECT ';' AS a /* ; */) FROM x")
	equal(t, "emit", s.Text[s.Sinks[0].EmitSpan.Start:s.Sinks[0].EmitSpan.End], "EMIT FINAL")
	equal(t, "envelope", s.Text[s.Sources[0].EnvSpan.Start:s.Sources[0].EnvSpan.End],
		"ENVELOPE DEBEZIUM SEQUENCE BY (seen, f(a, b)) DELETE WHEN (op = 'd')")
}

func TestPipelineName(t *testing.T) {
	for file, want := range map[string]string{
		"a/b/daily.sql": "daily",
		"DAILY.SQL":     "DAILY",
		"daily.v2.sql":  "daily.v2",
		"daily":         "daily",
	} {
		equal(t, file, pipelineName(file), want)
	}
}

func TestSkippedAroundTheText(t *testing.T) {
	unix := mustParse(t, dailySales)
	windows := mustParse(t, bom+strings.ReplaceAll(dailySales, "\n", "\r\n"))
	equal(t, "structure", structure(windows), structure(unix))
	span := windows.Sources[0].Name.Span
	equal(t, "span", windows.Text[span.Start:span.End], "orders")
}

// A source without a fault in a script with one is still there: Unsupported adds what it finds.
func TestPartialScript(t *testing.T) {
	s, err := Parse("p.sql", everything+"; CREATE VIEW;")
	if err == nil {
		t.Fatal("no error")
	}
	equal(t, "sources", len(s.Sources), 2)
	if len(s.Unsupported()) == 0 {
		t.Error("nothing unsupported")
	}
}
