package checkpoints

import (
	"fmt"
	"slices"
)

// Renamed gives the whole history of a pipeline, oldest first, another name. The name is in the checksums, and
// each names its parent's, so all of them change.
func Renamed(history []Manifest, name string) ([]Manifest, error) {
	out := slices.Clone(history)
	was := ""
	for i := range out {
		m := &out[i]
		if m.Seq != int64(i)+1 || m.ParentSHA != was {
			return nil, fmt.Errorf("manifest %d does not follow the one before it", m.Seq)
		}
		was = m.Checksum()
		m.Pipeline = name
		if i > 0 {
			m.ParentSHA = out[i-1].Checksum()
		}
	}
	return out, nil
}
