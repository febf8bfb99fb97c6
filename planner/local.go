package planner

import (
	"fmt"
	"slices"
	"strings"
)

// A local step keeps rows, by a key that says which of them belong together: the partition of a window.
// It runs the operator's own SQL again on the rows of the keys that a batch touches.
//
// Where rows only come, the first rows of each partition are all that can ever matter, so only they are
// kept. Where rows can be taken back, the step keeps a bag: every distinct row with the number of times
// it is there.

// keptRow says how the rows of an input lie in a state table: key expressions under k0, k1, …, the columns
// under c0, c1, …, but for those that are a key.
type keptRow struct {
	types []string
	keys  []*Expr
	at    map[int]int // column → key that holds its value
}

func keptRows(types []string, keys []*Expr) *keptRow {
	r := &keptRow{types: types, keys: keys, at: map[int]int{}}
	for i, k := range keys {
		// Of a float the key is 0.0 where the row has −0.0.
		if k.Op == opRef && !isFloat(k.Type) {
			r.at[k.Ref] = i
		}
	}
	return r
}

// col is how column i is written; prefix is that of columns which are no key.
func (r *keptRow) col(prefix string) columns {
	return func(i int) string {
		if k, ok := r.at[i]; ok {
			return fmt.Sprintf("k%d", k)
		}
		return fmt.Sprintf("%s%d", prefix, i)
	}
}

func (r *keptRow) keyNames() []string { return strings.FieldsFunc(each(len(r.keys), "k%[1]d"), comma) }

func comma(c rune) bool { return c == ',' || c == ' ' }

// rest are the columns that are no key.
func (r *keptRow) rest() []int {
	return slices.DeleteFunc(all(len(r.types)), func(i int) bool { _, ok := r.at[i]; return ok })
}

// names are all columns of the table.
func (r *keptRow) names() []string {
	out := r.keyNames()
	for _, i := range r.rest() {
		out = append(out, fmt.Sprintf("c%d", i))
	}
	return out
}

func (r *keptRow) stateCols() []Col {
	var out []Col
	for i, k := range r.keys {
		out = append(out, Col{Name: fmt.Sprintf("k%d", i), Type: k.Type})
	}
	for _, i := range r.rest() {
		out = append(out, Col{Name: fmt.Sprintf("c%d", i), Type: r.types[i]})
	}
	return out
}

// of selects the kept columns from rows c0, c1, … of an input.
func (r *keptRow) of(rows string, more ...string) string {
	var out []string
	for i, k := range r.keys {
		out = append(out, fmt.Sprintf("%s AS k%d", groupKey(k), i))
	}
	for _, i := range r.rest() {
		out = append(out, fmt.Sprintf("c%d", i))
	}
	return "SELECT " + strings.Join(append(out, more...), ", ") + " FROM (" + rows + ")"
}

func join(names ...[]string) string { return strings.Join(slices.Concat(names...), ", ") }

// top compiles a Top.
func (c *compiler) top(n *Top) *changes {
	_, key := stepKey(n)
	if f, ok := c.steps[key]; ok {
		return f
	}
	in := c.delta(n.In)
	t := &topStep{Top: n, keptRow: keptRows(n.In.Types(), n.Parts), k: len(c.plan.Steps)}
	step := Step{ID: stepID(n), Kind: "local", node: n, Pos: n.Pos, Of: in.of}
	if in.weighted {
		t.bag(&step, in)
	} else {
		t.first(&step, in)
	}
	c.plan.state = append(c.plan.state, canonicalTop(step.ID, n, in.weighted))
	c.plan.Steps = append(c.plan.Steps, step)
	width := len(n.In.Types())
	column := func(prefix string) columns {
		return func(i int) string {
			if i == width {
				return "_rank"
			}
			return t.col(prefix)(i)
		}
	}
	f := &changes{table: t.table("n"), types: n.Types(), news: column("c"), olds: column("o"), onNew: "_new", onOld: "_old", of: in.of.with(Origin{Steps: []string{step.ID}})}
	c.steps[key] = f
	return f
}

type topStep struct {
	*Top
	*keptRow
	k int // number of the step
}

func (t *topStep) table(prefix string) string { return fmt.Sprintf("%s%d", prefix, t.k) }

// numbered selects the first rows of every partition of a relation of kept rows, with their number.
func (t *topStep) numbered(rows string) string {
	number := fmt.Sprintf("row_number() OVER (%s) AS _rank", over(t.keyNames(), orderSQL(t.Order, t.col("c"))))
	return fmt.Sprintf("SELECT %s FROM (%s) QUALIFY _rank <= %d", list(join(t.names()), number), rows, t.Rows)
}

// touched selects the state rows of the keys that are in a relation.
func touched(state string, columns []string, in, same string, keys []string) string {
	some := "SELECT DISTINCT " + join(keys) + " FROM " + in
	if len(keys) == 0 {
		some = "SELECT 1 FROM " + in + " LIMIT 1"
	}
	return fmt.Sprintf("SELECT %s FROM %s s SEMI JOIN (%s) d ON %s", join(columns), state, some, matched("s.", same, "d.", keys))
}

// paired puts the new and the old rows of a key side by side, without those that stay as they are.
func (t *topStep) paired(news, olds string) string {
	keys := append(t.keyNames(), "_rank")
	selected := make([]string, 0, 2*len(t.types))
	same := []string{"n._rank IS NOT NULL", "o._rank IS NOT NULL"}
	for _, k := range keys {
		selected = append(selected, fmt.Sprintf("CASE WHEN n._rank IS NULL THEN o.%[1]s ELSE n.%[1]s END AS %[1]s", k))
	}
	for _, i := range t.rest() {
		selected = append(selected, fmt.Sprintf("n.c%[1]d AS c%[1]d, o.c%[1]d AS o%[1]d", i))
		same = append(same, fmt.Sprintf("n.c%[1]d IS NOT DISTINCT FROM o.c%[1]d", i))
	}
	return fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s, n._rank IS NOT NULL AS _new, o._rank IS NOT NULL AS _old FROM (%s) n FULL JOIN (%s) o ON %s WHERE NOT (%s)",
		t.table("n"), strings.Join(selected, ", "), news, olds, matched("n.", nullSafe, "o.", keys), strings.Join(same, " AND "))
}

// first keeps the first rows of every partition, with their number. Of the batch, only its own first
// rows can be among them.
func (t *topStep) first(step *Step, in delta) {
	state := Table{Name: t.table("s"), Key: len(t.keys) + 1}
	columns := t.stateCols()
	state.Cols = slices.Insert(columns, len(t.keys), Col{Name: "_rank", Type: "BIGINT"})
	step.State = state
	b, o, n := t.table("b"), t.table("o"), t.table("n")
	key := append(t.keyNames(), "_rank")
	both := fmt.Sprintf("SELECT %[1]s FROM %[2]s UNION ALL SELECT %[1]s FROM %[3]s", list(join(t.names()), "0 AS _"), o, b)
	step.All = []string{
		"CREATE OR REPLACE TEMP TABLE " + o + " AS FROM " + state.Name + " WHERE false",
		t.paired("FROM "+state.Name, "FROM "+o),
	}
	step.both(func(same string) (run, keep []string) {
		return []string{
				"CREATE OR REPLACE TEMP TABLE " + b + " AS " + t.numbered(t.of(in.sql, "0 AS _")),
				"CREATE OR REPLACE TEMP TABLE " + o + " AS " + touched(state.Name, append(t.names(), "_rank"), b, same, t.keyNames()),
				t.paired(t.numbered(both), "FROM "+o),
			}, []string{
				fmt.Sprintf("DELETE FROM %s s USING %s n WHERE n._old AND %s", state.Name, n, matched("s.", same, "n.", key)),
				fmt.Sprintf("INSERT INTO %[1]s (%[2]s) SELECT %[2]s FROM %[3]s", state.Name, state.columnList(), n),
			}
	})
	if len(t.keys) > 0 {
		step.Nulls = fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", n, anyNullIn(t.keyNames()))
	}
	step.Changed = fmt.Sprintf("SELECT %s, 1::TINYINT AS _op FROM %s", state.columnList(), n)
}

// bag keeps every row, because a row that was not among the first may come to be when another is taken
// back.
func (t *topStep) bag(step *Step, in delta) {
	b := bagOf(t.keptRow, false, t.k)
	step.State, step.Run, step.Keep, step.Changed = b.state, b.run(in), b.keep(), b.changed()
	paired := t.paired(t.numbered(b.rows(b.after)), t.numbered(b.rows(b.before)))
	step.Run, step.All = append(step.Run, paired), append(b.all(), paired)
}

func canonicalTop(step string, n *Top, weighted bool) canonicalState {
	in := describe(n.In)
	rows, _ := stepKey(n)
	s := canonicalState{Step: step, Rows: rows, Keeps: sorted(in.cols)}
	order := fmt.Sprintf("first %d by %s", n.Rows, canonKeys(n.Order, in.cols))
	if weighted {
		order = "all"
	}
	s.Keeps = append(s.Keeps, order)
	return s
}
