package planner

import (
	"fmt"

	"lockstep/sql"
)

// Where tells for messages where an offset of the pipeline file is, and whose SELECT is there: a view or
// a sink. place is the file alone when pos is negative, owner "" when nobody's or it cannot be told.
func (p *Plan) Where(pos int) (place, owner string) {
	if pos < 0 {
		if len(p.Sinks) == 1 {
			owner = p.Sinks[0].Name
		}
		return p.Script.File, owner
	}
	at := p.Script.Errorf(sql.Span{Start: pos, End: pos}, "", "")
	place = fmt.Sprintf("%s:%d:%d", at.File, at.Line, at.Col)
	within := func(s sql.Span) bool { return pos >= s.Start && pos < s.End }
	for _, v := range p.Script.Views {
		if within(v.Span) {
			owner = "view " + v.Name.Text
		}
	}
	for _, s := range p.Sinks {
		if within(s.Decl.Span) {
			owner = s.Name
		}
	}
	return place, owner
}
