package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/engine/duck"
	"lockstep/sql"
)

// Compile plans a pipeline. A faulty one gives sql.Errors with everything that is wrong.
func Compile(ctx context.Context, script *sql.Script, infer Infer) (*Plan, error) {
	eng, err := duck.Open(ctx, duck.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	return compileIn(ctx, eng, script, infer)
}

// compileIn plans in an engine that has nothing but what plans left in it.
func compileIn(ctx context.Context, eng *duck.Engine, script *sql.Script, infer Infer) (*Plan, error) {
	p := &planning{
		eng: eng, script: script, tables: tables{}, casts: map[string]string{}, types: map[string]string{},
		plan:  &Plan{Script: script, Name: script.Name},
		scope: newScope(),
	}
	p.faults = append(p.faults, script.Unsupported()...)
	for _, step := range []func(context.Context, Infer) error{p.names, p.variables, p.sources, p.views, p.sinks} {
		if err := step(ctx, infer); err != nil {
			return nil, err
		}
	}
	if len(p.faults) > 0 {
		return nil, p.distinctFaults()
	}
	if err := p.finish(ctx); err != nil {
		return nil, err
	}
	return p.plan, nil
}

type planning struct {
	eng    *duck.Engine
	script *sql.Script
	plan   *Plan
	scope  *scope
	tables tables
	above  []*sql.View       // without fault, in the order of the file
	types  map[string]string // DuckDB's names of declared types, by how they are declared
	casts  map[string]string // of constants: what is wrong with them, by their SQL
	faults sql.Errors
}

func (p *planning) fault(span sql.Span, hint, format string, args ...any) {
	p.faults = append(p.faults, p.script.Errorf(span, hint, format, args...))
}

// distinctFaults: what is wrong in a view may be found once for each sink that reads it.
func (p *planning) distinctFaults() sql.Errors {
	p.faults.Sort()
	var out sql.Errors
	seen := map[string]bool{}
	for _, e := range p.faults {
		if key := fmt.Sprint(e.Span, e.Message, e.Hint); !seen[key] {
			seen[key] = true
			out = append(out, e)
		}
	}
	return out
}

// names tells the functions there are, for suggestions.
func (p *planning) names(context.Context, Infer) error {
	for _, v := range p.script.Variables {
		p.scope.variables = append(p.scope.variables, v.Name.Text)
	}
	for _, v := range p.script.Views {
		p.scope.later[strings.ToLower(v.Name.Text)] = true
	}
	for _, set := range []map[string]bool{scalarFunctions, aggregateFunctions} {
		for name := range set {
			if isWord(name[0]) {
				p.scope.functions = append(p.scope.functions, name)
			}
		}
	}
	slices.Sort(p.scope.functions)
	return nil
}

// variables sets every SET VARIABLE, which must be a constant.
func (p *planning) variables(ctx context.Context, _ Infer) error {
	for _, v := range p.script.Variables {
		q := compose(nil, sql.Expr{Text: "SELECT " + v.Value.Text + "\n", Span: sql.Span{Start: v.Value.Span.Start - len("SELECT ")}})
		tree, err := serialize(ctx, p.eng, "json_serialize_sql", q)
		var r *refusal
		switch {
		case errors.As(err, &r):
			p.faultOf(v.Value.Span, r)
		case err != nil:
			return err
		case !constant(tree):
			p.fault(v.Value.Span, "write the value itself", "SET VARIABLE takes a constant")
		default:
			set := "SET VARIABLE " + duck.Quote(v.Name.Text) + " = (" + v.Value.Text + "\n)"
			if err := p.eng.Exec(ctx, set); err != nil {
				p.fault(v.Value.Span, "", "%s", firstSentence(err))
			}
			p.plan.Variables = append(p.plan.Variables, set)
		}
	}
	return nil
}

// constant: the tree of a SELECT has nothing but constants and casts and lists of them.
func constant(v any) bool {
	switch v := v.(type) {
	case object:
		switch text(v, "class") {
		case "", "CONSTANT", "CAST":
		case "FUNCTION":
			if name := text(v, "function_name"); name != "-" && name != "+" && name != "list_value" {
				return false
			}
		default:
			return false
		}
		if kind := text(v, "type"); kind == "BASE_TABLE" || kind == "TABLE_FUNCTION" || kind == "JOIN" {
			return false
		}
		for _, c := range v {
			if !constant(c) {
				return false
			}
		}
	case []any:
		for _, c := range v {
			if !constant(c) {
				return false
			}
		}
	}
	return true
}

// sources makes an empty table per source, for DuckDB to bind against.
func (p *planning) sources(ctx context.Context, infer Infer) error {
	for _, s := range p.script.Sources {
		columns, err := p.columns(ctx, s, infer)
		if err != nil {
			return err
		}
		if columns == nil {
			p.scope.add(s.Name.Text, nil)
			p.scope.broken[strings.ToLower(s.Name.Text)] = true
			continue
		}
		checks, err := p.rows(ctx, s, columns)
		if err != nil {
			return err
		}
		source := Source{Name: lower(s.Name.Text), Decl: s, Columns: columns, Checks: checks}
		if !p.scope.broken[strings.ToLower(s.Name.Text)] {
			if err := p.watermark(ctx, s, &source); err != nil {
				return err
			}
		}
		if source.Replaced = s.FilesMode() == "replace"; source.Replaced {
			p.tables[source.Name] = true
			p.addPlaceTo(&source)
		}
		p.plan.Sources = append(p.plan.Sources, source)
	}
	return nil
}

// columns gives the source's columns with DuckDB's names for their types; nil when they are not known.
func (p *planning) columns(ctx context.Context, s *sql.Source, infer Infer) ([]Column, error) {
	if len(s.Columns) == 0 {
		if infer == nil {
			p.fault(s.Head, "", "source %s declares no columns", s.Name.Text)
			return nil, nil
		}
		columns, err := infer(ctx, s)
		var fault *sql.Error
		if errors.As(err, &fault) {
			p.faults = append(p.faults, fault)
			return nil, nil
		}
		return columns, err
	}
	var columns []Column
	for _, c := range s.Columns {
		typ, known := p.types[c.Type.Text]
		if !known {
			faults := len(p.faults)
			var err error
			if typ, err = p.typeOf(ctx, c.Type); err != nil {
				return nil, err
			}
			if len(p.faults) == faults { // else each place it is used at is told
				p.types[c.Type.Text] = typ
			} else {
				p.scope.guessed[strings.ToLower(s.Name.Text)] = true
			}
		}
		columns = append(columns, Column{Name: c.Name.Text, Type: typ, NotNull: c.NotNull, Metadata: c.Metadata})
	}
	return columns, nil
}

// namedTypes are DuckDB's own names of types without parameters: nothing has to be asked about them.
var namedTypes = strings.Fields("BIGINT BOOLEAN DATE DOUBLE FLOAT HUGEINT INTEGER SMALLINT TIMESTAMP TINYINT UBIGINT VARCHAR")

// typeOf is DuckDB's name of a declared type. After a fault it is VARCHAR, so that the SELECT is still
// checked.
func (p *planning) typeOf(ctx context.Context, declared sql.Expr) (string, error) {
	if name := strings.ToUpper(declared.Text); slices.Contains(namedTypes, name) {
		return name, nil
	}
	const before = "SELECT CAST(NULL AS "
	q := compose(nil, sql.Expr{Text: before + declared.Text + "\n)", Span: sql.Span{Start: declared.Span.Start - len(before)}})
	tree, err := serialize(ctx, p.eng, "json_serialize_plan", q)
	var r *refusal
	if errors.As(err, &r) {
		if r.about == "type" {
			r.hint = didYouMean(r.names[0], typeNames)
		}
		if r.pos < declared.Span.Start || r.pos >= declared.Span.End {
			r.pos = -1
		}
		p.faultOf(declared.Span, r)
		return "VARCHAR", nil
	}
	if err != nil {
		return "", err
	}
	plans := children(tree, "plans")
	if len(plans) == 1 {
		plan, _ := plans[0].(object)
		if exprs := children(plan, "expressions"); len(exprs) == 1 {
			expr, _ := exprs[0].(object)
			_, err := typeName(expr["return_type"])
			if err == nil {
				var typ string // as DuckDB spells it, which is how the readers of files do
				err := p.eng.QueryRow(ctx, "SELECT column_type FROM (DESCRIBE SELECT CAST(NULL AS "+declared.Text+"\n) AS c)", nil, &typ)
				return typ, err
			}
			p.fault(declared.Span, "read it as another type, and cast it in the SELECT", "%v are not supported", err)
			return "VARCHAR", nil
		}
	}
	p.fault(declared.Span, "", "this is not a type")
	return "VARCHAR", nil
}

// finish compiles the steps once everything is known to be right.
func (p *planning) finish(ctx context.Context) error {
	c := &compiler{plan: p.plan, whole: map[string]*Aggregate{}, folds: map[string]*fold{}, steps: map[string]*changes{}, reads: map[string]int{}, rows: map[string]*sourceRows{}}
	for i := range p.plan.Sinks {
		c.gather(p.plan.Sinks[i].root)
	}
	for i := range p.plan.Sinks {
		c.sink(&p.plan.Sinks[i], p.plan.Sinks[i].root, i)
	}
	if p.unkept(); len(p.faults) > 0 {
		return p.distinctFaults()
	}
	for i := range p.plan.Sources {
		p.plan.Sources[i].Reads = c.reads[p.plan.Sources[i].Name]
	}
	version, err := p.eng.Version(ctx)
	if err != nil {
		return err
	}
	p.plan.Hash, err = hashOf(p.plan, version)
	return err
}

// unkept refuses state that would not come back as it was: DuckDB hands intervals out in nanoseconds, and
// one of more than 292 years of hours wraps around.
func (p *planning) unkept() {
	for _, step := range p.plan.Steps {
		for _, c := range step.State.Cols {
			if !strings.Contains(c.Type, "INTERVAL") {
				continue
			}
			at := p.script.Sinks[0].Head
			if step.Pos >= 0 {
				at = wordAt(p.script.Text, step.Pos)
			}
			p.fault(at, "keep a number in its place: epoch(i) inside the aggregate, or a computed column of the source such as seconds DOUBLE AS (epoch(i))", "an INTERVAL cannot be kept from batch to batch in this version")
			break
		}
	}
}

func nameOf(q sql.QName) string {
	parts := make([]string, len(q.Parts))
	for i, n := range q.Parts {
		parts[i] = n.Text
	}
	return strings.Join(parts, ".")
}
