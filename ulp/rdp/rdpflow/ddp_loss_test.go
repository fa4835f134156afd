package rdpflow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/rdpllp"
)

// Whatever packets a capture of DDP over RDP lacks, and however it has them out of order by a few milliseconds, nobody is blamed.
func TestNobodyIsBlamedForWhatACaptureOfDDPLacks(t *testing.T) {
	for seed := range uint64(4) {
		faults := rdp.Faults{Delay: time.Millisecond, Jitter: 2 * time.Millisecond, Loss: float64(seed%2) * 0.1}
		r := record(t, seed, faults, rdpllp.Config{MaxSegment: 1472}, exchangeAll)
		for side := range r.files {
			all := packetsOf(t, r.files[side].Bytes())
			random := rand.New(rand.NewPCG(seed, uint64(side)))
			try := func(name string, packets []capture.Packet) {
				f := analyzeWith(t, fileOf(t, packets), &Analyzer{})
				// What RDP's own rules say is another test's.
				f.broken = slices.DeleteFunc(f.broken, func(rule string) bool { return strings.HasPrefix(rule, "rdp-") })
				if len(f.broken) > 0 {
					t.Errorf("seed %d, side %d, %s: %v\nnotes %q", seed, side, name, f.details, f.notes)
				}
			}
			for i := int(seed); i < len(all); i += 17 {
				try(fmt.Sprintf("without packet %d", i+1), slices.Delete(slices.Clone(all), i, i+1))
				try(fmt.Sprintf("from packet %d on", i+1), all[i:])
				try(fmt.Sprintf("up to packet %d", i), all[:i])
			}
			for i := range 12 {
				few := slices.DeleteFunc(slices.Clone(all), func(capture.Packet) bool { return random.IntN(4+i) == 0 })
				try(fmt.Sprintf("with gaps %d", i), few)
				mixed := slices.Clone(all)
				for range 1 + i {
					a := random.IntN(len(mixed) - 1)
					if d := mixed[a+1].Time.Sub(mixed[a].Time); d < 5*time.Millisecond {
						mixed[a], mixed[a+1] = mixed[a+1], mixed[a]
					}
				}
				try(fmt.Sprintf("mixed %d", i), mixed)
			}
		}
	}
}
