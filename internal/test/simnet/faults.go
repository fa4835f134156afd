package simnet

import (
	"math/rand/v2"
	"time"
)

// Faults says how one direction of a stream misbehaves. The zero Faults is a
// perfect stream. Offsets count octets written in that direction from 1; zero
// is never.
type Faults struct {
	Seed        uint64        // of the choices below
	ShortReads  bool          // a read returns a random part of what is there
	ShortWrites bool          // a write takes a random part of what is offered
	Latency     time.Duration // how long each octet is on its way
	Jitter      time.Duration // up to how much longer, at random; the order is kept

	CutAt     int64 // the octet at which the connection is reset
	StallAt   int64 // the octet from which on nothing arrives any more
	CorruptAt int64 // the octet of which one bit arrives flipped
}

func (f *Faults) rand() *rand.Rand { return rand.New(rand.NewPCG(f.Seed, 0x9E3779B97F4A7C15)) }

// part returns a random number between 1 and n, or n if split is false.
func part(rng *rand.Rand, split bool, n int) int {
	if !split || n <= 1 {
		return n
	}
	return 1 + rng.IntN(n)
}
