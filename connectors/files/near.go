package files

import "strings"

// didYouMean proposes the candidate nearest to a misspelled name, as a sentence; "" when none is near.
func didYouMean(name string, candidates []string) string {
	lower := strings.ToLower(strings.TrimSpace(name))
	best, distance := "", min(max(1, len(lower)/3)+1, len(lower)) // of one letter nothing is near
	for _, c := range candidates {
		if d := edits(lower, strings.ToLower(strings.TrimSpace(c))); d < distance {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// edits is the number of inserted, deleted or replaced bytes that turn a into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
