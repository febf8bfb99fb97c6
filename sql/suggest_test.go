package sql

import "testing"

func TestSuggest(t *testing.T) {
	columns := []string{"order_id", "amount", "Amounts", "id", "größe", "store"}
	for name, want := range map[string]string{
		"amout":    "amount",
		"AMOUNT":   "amount",
		"amounts":  "Amounts",
		"amuont":   "amount",
		"oder_id":  "order_id",
		"orderid":  "order_id",
		"grösse":   "größe",
		"ix":       "",
		"ID":       "id",
		"customer": "",
		"":         "",
	} {
		equal(t, name, Suggest(name, columns), want)
	}
	equal(t, "no candidates", Suggest("a", nil), "")
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"abc", "acb", 1}, {"abc", "abd", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3},
	} {
		equal(t, c.a+" "+c.b, distance([]rune(c.a), []rune(c.b)), c.want)
	}
}
