package sql

import (
	"strings"
	"unicode/utf8"
)

// Bounds on the time a suggestion may take, in a generated file with thousands of names.
const (
	maxCandidates = 500
	maxNameLen    = 200 // bytes
)

// Suggest returns the candidate that name most likely was meant to be, or "". Letter case does not
// count. Names of up to two characters get no suggestion but themselves, others may differ in one
// edit per three characters: an insertion, deletion, replacement, or swap of neighbours.
func Suggest(name string, candidates []string) string {
	if len(name) > maxNameLen {
		return ""
	}
	a := []rune(strings.ToLower(name))
	best, limit := "", len(a)/3
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		diff := utf8.RuneCountInString(c) - len(a)
		if diff > limit || -diff > limit {
			continue
		}
		if d := distance(a, []rune(strings.ToLower(c))); d <= limit {
			best, limit = c, d-1
		}
	}
	return best
}

// distance is the Damerau-Levenshtein distance in its optimal string alignment form.
func distance(a, b []rune) int {
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i, x := range a {
		row[0] = i + 1
		for j, y := range b {
			cost := 1
			if x == y {
				cost = 0
			}
			row[j+1] = min(prev[j]+cost, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x == b[j-1] && a[i-1] == y {
				row[j+1] = min(row[j+1], prev2[j-1]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}

// didYouMean is the hint with the name Suggest finds, or "".
func didYouMean(name string, candidates []string) string {
	if s := Suggest(name, candidates); s != "" {
		return `did you mean "` + s + `"?`
	}
	return ""
}

// keywordHint is didYouMean for keywords, which stand without quotes.
func keywordHint(text string, keywords []string) string {
	if s := Suggest(text, keywords); s != "" {
		return "did you mean " + s + "?"
	}
	return ""
}
