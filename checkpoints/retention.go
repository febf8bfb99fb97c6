package checkpoints

import (
	"slices"
	"time"
)

// Point is a change that can be restored while its segments are kept.
type Point struct {
	Seq  int64
	Time time.Time
}

// Kept is a retained checkpoint and why.
type Kept struct {
	Seq    int64
	Reason string // newest, hourly or daily
}

// Retention says which checkpoints are kept: the newest ones all, then thinned out with their age.
type Retention struct {
	Newest int           // this many, whatever their age
	Hourly time.Duration // the last of every hour that is younger than this
	Daily  time.Duration // the last of every day (UTC) that is younger than this
}

// DefaultRetention keeps the last ten, then hourly ones for a day and daily ones for a week.
var DefaultRetention = Retention{Newest: 10, Hourly: 24 * time.Hour, Daily: 7 * 24 * time.Hour}

// Keep picks the retained ones of some points. A point that is kept today because it is the last of its
// day was kept before as the last of its hour, so no choice ever asks for what was dropped already.
func (r Retention) Keep(points []Point, now time.Time) []Kept {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b Point) int { return int(b.Seq - a.Seq) })
	var out []Kept
	hours, days := map[time.Time]bool{}, map[time.Time]bool{}
	for i, p := range sorted {
		hour, day := p.Time.UTC().Truncate(time.Hour), p.Time.UTC().Truncate(24*time.Hour)
		lastOfHour, lastOfDay := !hours[hour], !days[day]
		hours[hour], days[day] = true, true
		age := now.Sub(p.Time)
		switch {
		case i < r.Newest:
			out = append(out, Kept{p.Seq, "newest"})
		case lastOfHour && age < r.Hourly:
			out = append(out, Kept{p.Seq, "hourly"})
		case lastOfDay && age < r.Daily:
			out = append(out, Kept{p.Seq, "daily"})
		}
	}
	return out
}
