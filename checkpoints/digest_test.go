package checkpoints_test

import (
	"testing"

	"pgregory.net/rapid"

	"lockstep/checkpoints"
)

func digests() *rapid.Generator[checkpoints.Digest] {
	return rapid.Custom(func(t *rapid.T) checkpoints.Digest {
		d, err := checkpoints.ParseDigest(rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "digest"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestDigestIsAGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := digests().Draw(t, "a"), digests().Draw(t, "b"), digests().Draw(t, "c")
		if a.Add(b) != b.Add(a) || a.Add(b).Add(c) != a.Add(b.Add(c)) {
			t.Error("the order of sums matters")
		}
		if a.Add(b).Sub(b) != a || a.Sub(b).Add(b) != a || a.Sub(a) != (checkpoints.Digest{}) {
			t.Error("adding and taking away does not return to the start")
		}
		if back, err := checkpoints.ParseDigest(a.String()); err != nil || back != a {
			t.Errorf("%s is read back as %s, %v", a, back, err)
		}
	})
}

func TestParseDigest(t *testing.T) {
	for _, wrong := range []string{"0", "zz", "00000000000000000000000000000000 ", "0000000000000000000000000000000000"} {
		if _, err := checkpoints.ParseDigest(wrong); err == nil {
			t.Errorf("%q is a digest", wrong)
		}
	}
	if d, err := checkpoints.ParseDigest(""); err != nil || d != (checkpoints.Digest{}) {
		t.Errorf("nothing is read as %s, %v", d, err)
	}
}
