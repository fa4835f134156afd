package rpcrdma_test

import (
	"fmt"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

func TestCallsOfAllSizesComeThroughWithEachRegistration(t *testing.T) {
	sizes := [][]int{
		nil, {1, 2, 3}, {5000, 0, 5001}, {5001, 5002, 5003}, {100_000, 10, 100_001},
	}
	for _, n := range []int{0, 1, 100, 900, 1000, 3900, 4000, 4096, 5001, 100_003, 1 << 20} {
		sizes = append(sizes, []int{n})
	}
	for _, how := range []rpcrdma.Registration{rpcrdma.RegisterFast, rpcrdma.RegisterEach, rpcrdma.RegisterPool} {
		for _, most := range []int{1 << 20, 1000} {
			t.Run(fmt.Sprint(how, " in segments of ", most), func(t *testing.T) {
				_, address := serve(t, newService(t), rpcrdma.Config{})
				c := dial(t, address, rpcrdma.Config{Registration: how, MaxSegment: most})
				for _, lengths := range sizes {
					if most == 1000 && len(lengths) > 0 && lengths[0] > 50_000 {
						continue
					}
					roundTrip(t, c, nil, lengths...)
					roundTrip(t, c, func(r *oncrpc.Request) { r.Whole = true }, lengths...)
				}
			})
		}
	}
}
