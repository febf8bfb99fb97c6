package checkpoints

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Checksum is the SHA-256, in hex, of the manifest's canonical JSON:
//
//   - the fields under their JSON names; the keys of every object sorted by their bytes,
//   - no white space, numbers as decimal integers, <, > and & written as they are,
//   - batch_time as UTC with exactly six digits of a second, "2024-05-05T23:58:00.000000Z",
//   - an absent map as {}.
//
// A field that is added later must be left out while it is empty, so that the checksums of manifests
// already stored stay what they are.
func (m Manifest) Checksum() string {
	m.Position, m.Sources, m.Sinks = notNil(m.Position), notNil(m.Sources), notNil(m.Sinks)
	type plain Manifest
	return shaOf(canonicalJSON(struct {
		plain
		BatchTime string `json:"batch_time"`
	}{plain(m), m.BatchTime.UTC().Format("2006-01-02T15:04:05.000000Z")}))
}

// Texts are the parts of a manifest that a destination stores as JSON.
type Texts struct{ Env, Position, Counts, Live string }

type counts struct {
	Sources map[string]SourceCount `json:"sources"`
	Sinks   map[string]SinkCount   `json:"sinks"`
	Losses  map[string]LossCount   `json:"losses,omitempty"`
}

// Texts writes the parts.
func (m Manifest) Texts() Texts {
	return Texts{
		Env:      canonicalJSON(m.Env),
		Position: canonicalJSON(notNil(m.Position)),
		Counts:   canonicalJSON(counts{notNil(m.Sources), notNil(m.Sinks), m.Losses}),
		Live:     canonicalJSON(m.Live),
	}
}

// SetTexts fills the manifest from the parts.
func (m *Manifest) SetTexts(t Texts) error {
	var c counts
	for _, part := range []struct {
		name, text string
		into       any
	}{{"env", t.Env, &m.Env}, {"position", t.Position, &m.Position}, {"counts", t.Counts, &c}, {"sum of live segments", t.Live, &m.Live}} {
		if err := json.Unmarshal([]byte(part.text), part.into); err != nil {
			return fmt.Errorf("its %s cannot be read: %w", part.name, err)
		}
	}
	m.Sources, m.Sinks, m.Losses = c.Sources, c.Sinks, c.Losses
	return nil
}

// PositionSHA is the SHA-256, in hex, of the position's text.
func (t Texts) PositionSHA() string { return shaOf(t.Position) }

// canonicalJSON goes through a generic value because maps, unlike structs, come out with sorted keys.
func canonicalJSON(v any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	var generic any
	text, err := json.Marshal(v)
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		err = dec.Decode(&generic)
	}
	if err == nil {
		err = enc.Encode(generic)
	}
	if err != nil {
		panic(err) // strings, integers and maps of them always encode
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func shaOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func notNil[M ~map[K]V, K comparable, V any](m M) M {
	if m == nil {
		return M{}
	}
	return m
}

// Time cuts a time to what a manifest keeps: UTC, microseconds.
func Time(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// RangesSHA is the SHA-256, in hex, over the ranges of one change, in any order: a replay reads what
// they say, so they must be what was committed.
func RangesSHA(ranges []Range) string {
	sum := sha256.New()
	for _, r := range sortRanges(ranges) {
		var b []byte
		for _, text := range []string{r.Source, r.Split, r.Content} {
			b = appendText(b, text)
		}
		for _, n := range []int64{r.From, r.To, r.Rows} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		sum.Write(b)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func sortRanges(ranges []Range) []Range {
	return slices.SortedFunc(slices.Values(ranges), func(a, b Range) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Split, b.Split), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}
