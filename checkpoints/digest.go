package checkpoints

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// Digest summarises a bag of things, in any order: the sum, modulo 2^128, of the xxh3-128 of each
// thing's canonical bytes. Because it is a sum, it is kept up to date from a change alone:
//
//	new = old + inserted + (updated, new values) − (updated, old values) − deleted
//
// It finds damage and mistakes. It is no defence against somebody who builds collisions.
type Digest struct{ hi, lo uint64 }

// Add returns the digest of both bags together.
func (d Digest) Add(o Digest) Digest {
	lo, carry := bits.Add64(d.lo, o.lo, 0)
	hi, _ := bits.Add64(d.hi, o.hi, carry)
	return Digest{hi, lo}
}

// Sub returns the digest of d's bag without o's.
func (d Digest) Sub(o Digest) Digest {
	lo, borrow := bits.Sub64(d.lo, o.lo, 0)
	hi, _ := bits.Sub64(d.hi, o.hi, borrow)
	return Digest{hi, lo}
}

// String writes the digest as 32 hex digits.
func (d Digest) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], d.hi)
	binary.BigEndian.PutUint64(b[8:], d.lo)
	return hex.EncodeToString(b[:])
}

// ParseDigest reads what String wrote; "" is the digest of nothing.
func ParseDigest(s string) (Digest, error) {
	if s == "" {
		return Digest{}, nil
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return Digest{}, fmt.Errorf("digest %q is not 32 hex digits", s)
	}
	return Digest{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}, nil
}

// digestOf is the digest of one thing, given as its canonical bytes.
func digestOf(canonical []byte) Digest {
	h := xxh3.Hash128(canonical)
	return Digest{h.Hi, h.Lo}
}
