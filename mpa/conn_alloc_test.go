//go:build !race

package mpa

import (
	"fmt"
	"testing"
)

// With the race detector, a sync.Pool forgets on purpose; hence the build tag.
func TestTransferAllocatesNothing(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, sizes := range [][]int{{64, 64, 64, 1442}, {MaxMULPDU}, {20, 60_000, 20}} {
			t.Run(fmt.Sprintf("markers=%v sizes=%v", markers, sizes), func(t *testing.T) {
				x, y := sockets(t, loopbacks[0])
				cfg := Config{Markers: markers}
				ini, res := connect(t, x, y, cfg, cfg)
				header, memory := make([]byte, 18), make([]byte, MaxMULPDU)
				payload := make([][]byte, 1)
				arrived := make(chan struct{}, len(sizes))
				place := each(func([]byte, uint64) { arrived <- struct{}{} })
				go func() {
					for res.Receive(place) == nil {
					}
				}()
				allocs := testing.AllocsPerRun(200, func() {
					for _, size := range sizes {
						payload[0] = memory[:size-len(header)]
						if ok, err := ini.Post(header, payload, true); !ok || err != nil {
							t.Fatal(ok, err)
						}
						for done := false; !done; {
							var err error
							if done, err = ini.Flush(true); err != nil {
								t.Fatal(err)
							}
						}
					}
					for range sizes {
						<-arrived
					}
				})
				if allocs != 0 {
					t.Errorf("%v allocations to send and receive %d ULPDUs", allocs, len(sizes))
				}
			})
		}
	}
}
