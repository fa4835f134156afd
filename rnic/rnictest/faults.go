package rnictest

import (
	"math/rand/v2"
	"time"
)

// Faults are the faults of one direction of the connection. The zero Faults is
// a perfect network. Positions are bytes of that direction, counted from 1,
// including those of start-up; zero stands for never.
type Faults struct {
	// Seed determines what the other fields leave open: the length of a short
	// read or write, the jitter, which bit is flipped.
	Seed        uint64
	ShortReads  bool          // a read returns a random part of what is there
	ShortWrites bool          // a write takes a random part of what is offered
	Latency     time.Duration // delay of each byte
	Jitter      time.Duration // maximum of a random additional delay; the order is preserved

	CutAt     int64 // the byte at which the connection is reset
	StallAt   int64 // the byte from which on nothing arrives
	CorruptAt int64 // the byte that arrives with one bit flipped
}

// RandomFaults returns faults whose kinds and positions follow from the seed;
// the same seed always returns the same. In half of all cases the direction is
// slow, up to some 20 ms; in half of them it splits reads and writes. In three
// of four cases it is cut, stalls or is corrupted once, at one of the first 64
// Ki bytes. Early ones, where start-up is, are more likely.
//
// As start-up may fail, tests use it with [TryConnect]. Each direction gets its
// own seed:
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
