package planner

import (
	"fmt"
	"strings"
)

// bag is the state of a local step over rows that can be taken back: every distinct row, and how many
// times it is there.
type bag struct {
	*keptRow
	state         Table
	delta         string // temp table of the batch's rows, summed
	before, after string // temp tables of all rows of the touched keys
	update        string // temp table of the rows whose number changes
	always        bool   // there is a result also of no rows: the bag has a row that is none of them
}

func bagOf(rows *keptRow, always bool, k int) *bag {
	b := &bag{keptRow: rows, always: always}
	for name, to := range map[string]*string{"s": &b.state.Name, "d": &b.delta, "o": &b.before, "m": &b.after, "u": &b.update} {
		*to = fmt.Sprintf("%s%d", name, k)
	}
	b.state.Cols = append(rows.stateCols(), b.signs()...)
	if b.marked() {
		b.state.Cols = append([]Col{{Name: "_row", Type: "BOOLEAN"}}, b.state.Cols...)
	}
	b.state.Key = len(b.state.Cols)
	b.state.Cols = append(b.state.Cols, Col{Name: "_n", Type: "BIGINT"})
	return b
}

// signs are columns that tell −0.0 from 0.0, which are equal and yet two values.
func (b *bag) signs() []Col {
	var out []Col
	for _, i := range b.rest() {
		if isFloat(b.types[i]) {
			out = append(out, Col{Name: fmt.Sprintf("z%d", i), Type: "BOOLEAN"})
		}
	}
	return out
}

// identity names all columns that identify a row.
func (b *bag) identity() []string {
	names := make([]string, b.state.Key)
	for i := range names {
		names[i] = b.state.Cols[i].Name
	}
	return names
}

// run finds what changes in the bag, and leaves the rows of the touched keys before and after the batch.
func (b *bag) run(in delta) []string {
	var more []string
	for _, s := range b.signs() {
		more = append(more, fmt.Sprintf("signbit(c%s) AS %s", s.Name[1:], s.Name))
	}
	if b.marked() {
		more = append(more, "true AS _row")
	}
	row := b.identity()
	rows := strings.Join(row, ", ")
	grouped := func(n, from, having string) string {
		return fmt.Sprintf("SELECT %s, %s AS _n FROM %s GROUP BY %s HAVING %s", rows, "sum("+n+")::BIGINT", from, ordinals(len(row)), having)
	}
	const lost = "error('a row was taken back that was not there')"
	from := b.of(in.withWeight(), append(more, "_w")...)
	if b.always {
		none := make([]string, len(row))
		for i, c := range b.state.Cols[:len(row)] {
			none[i] = "CAST(NULL AS " + c.Type + ")"
		}
		none[0] = "false"
		from = fmt.Sprintf("SELECT %s, _w FROM (%s) UNION ALL SELECT %s, 1 WHERE NOT EXISTS (FROM %s)", rows, from, strings.Join(none, ", "), b.state.Name)
	}
	return []string{
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS %s", b.delta, grouped("_w", "("+from+")", "sum(_w) <> 0")),
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS %s", b.before, touched(b.state.Name, append(b.identity(), "_n"), b.delta, nullSafe, b.keyNames())),
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS %s", b.after,
			grouped("_n", fmt.Sprintf("(FROM %s UNION ALL FROM %s)", b.before, b.delta), "CASE WHEN sum(_n) < 0 THEN "+lost+" ELSE sum(_n) <> 0 END")),
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s, coalesce(m._n, 0) AS _n, s._n IS NOT NULL AS _had FROM %s d LEFT JOIN %s m ON %s LEFT JOIN %s s ON %s",
			b.update, prefixedAll("d.", b.identity()), b.delta, b.after, matched("d.", nullSafe, "m.", row), b.before, matched("d.", nullSafe, "s.", row)),
	}
}

// all makes every row of the bag one that is new.
func (b *bag) all() []string {
	rows := fmt.Sprintf("SELECT %s FROM %s", join(b.identity(), []string{"_n"}), b.state.Name)
	return []string{
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS %s WHERE false", b.before, rows),
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS %s", b.after, rows),
	}
}

// keep brings the bag to what run found.
func (b *bag) keep() []string {
	return []string{
		fmt.Sprintf("DELETE FROM %s s USING %s u WHERE u._had AND %s", b.state.Name, b.update, matched("s.", nullSafe, "u.", b.identity())),
		fmt.Sprintf("INSERT INTO %s SELECT %s FROM %s WHERE _n > 0", b.state.Name, b.state.columnList(), b.update),
	}
}

// changed selects what the batch did to the bag.
func (b *bag) changed() string {
	return fmt.Sprintf("SELECT %s, (CASE WHEN _n > 0 THEN 1 ELSE 0 END)::TINYINT AS _op FROM %s WHERE _n > 0 OR _had", b.state.columnList(), b.update)
}

// rows selects the rows of a temp table as many times as they are there.
func (b *bag) rows(table string) string {
	q := "SELECT " + join(b.names(), []string{"unnest(range(_n)) AS _i"}) + " FROM " + table
	if b.marked() {
		q += " WHERE _row"
	}
	return q
}

// marked bags have a column that is true for rows: where only their number is asked for, or where there
// is a row that is none.
func (b *bag) marked() bool { return b.always || len(b.types)+len(b.keys) == 0 }

// touchedAt is true when the batch touches the one key of a bag that always has a result, and when there
// was one in the temp table.
func (b *bag) touchedAt(table string) string {
	return "EXISTS (FROM " + table + " WHERE NOT _row)"
}

func prefixedAll(prefix string, names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return strings.Join(out, ", ")
}

// bag refuses rows whose equal values look different: one could be kept and the other taken back.
func (c *checker) bag(pos int, types []string) {
	for _, t := range types {
		if !oneLook(t) && !isFloat(t) {
			c.refuse(pos, "cast it to VARCHAR, or take it apart, in the inner SELECT",
				"rows with a column of type %s cannot be kept here: they can be taken back, and equal values of the type can look different", article(t))
			return
		}
	}
}
