package rnictest

import (
	"math/rand/v2"
	"time"
)

// Faults says how one direction of the connection misbehaves. The zero Faults is
// a perfect network. Places are octets of that direction, counted from 1, with
// those of start-up among them; zero is never.
type Faults struct {
	// Seed makes the choices that the others leave open: how much a short read or
	// write takes, how long the jitter is, which bit is flipped.
	Seed        uint64
	ShortReads  bool          // a read returns a random part of what is there
	ShortWrites bool          // a write takes a random part of what is offered
	Latency     time.Duration // how long each octet is on its way
	Jitter      time.Duration // up to how much longer, at random; the order is kept

	CutAt     int64 // the octet at which the connection is reset
	StallAt   int64 // the octet from which on nothing arrives any more
	CorruptAt int64 // the octet of which one bit arrives flipped
}

// RandomFaults returns faults of which a seed chooses the kinds and the places;
// the same seed always chooses the same. The direction may be slow, up to some
// 20 ms, and split reads and writes, each in half of all cases. In three of four
// cases it is cut, stalls or is corrupted once, at one of the first 64 Ki octets;
// early ones, where there is start-up, are more likely.
//
// As start-up may fail, tests use it with [TryConnect]. Both directions get a
// seed of their own:
//
//	for seed := range uint64(500) {
//		synctest.Test(t, func(t *testing.T) {
//			p, err := rnictest.TryConnect(t, rnictest.Options{
//				AB: rnictest.RandomFaults(2 * seed), BA: rnictest.RandomFaults(2*seed + 1),
//			})
//			…
//		})
//	}
func RandomFaults(seed uint64) Faults {
	rng := rand.New(rand.NewPCG(seed, 0xD1B54A32D192ED03))
	maybe := func() bool { return rng.IntN(2) == 0 }
	f := Faults{Seed: rng.Uint64(), ShortReads: maybe(), ShortWrites: maybe()}
	if maybe() {
		f.Latency = time.Duration(rng.Int64N(int64(10 * time.Millisecond)))
	}
	if maybe() {
		f.Jitter = time.Duration(rng.Int64N(int64(10 * time.Millisecond)))
	}
	at := 1 + rng.Int64N(1<<rng.IntN(17))
	switch rng.IntN(4) {
	case 0:
		f.CutAt = at
	case 1:
		f.StallAt = at
	case 2:
		f.CorruptAt = at
	default: // nothing happens
	}
	return f
}
