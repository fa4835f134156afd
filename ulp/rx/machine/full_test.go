package machine

import (
	"testing"

	"urnic/ulp/rx/wire"
)

// A request that fills its packets exactly ends with a full one: a server that has all
// arguments replies, and may not find that the request has not ended.
func TestTheLastPacketMayBeFull(t *testing.T) {
	for _, packets := range []int{1, 3} {
		r, k := newClient(t, Config{}, DialConfig{})
		k.out.cwnd = 8
		n := packets * k.bodyLimit()
		if got, err := k.Write(r.at, pattern(n)); got != n || err != nil {
			t.Fatalf("Write = %d, %v", got, err)
		}
		r.do()
		for _, p := range r.take() {
			if p.Seq == uint32(packets) {
				t.Errorf("the last of %d packets has left before it was known to be the last", packets)
			}
		}
		if err := k.CloseWrite(r.at); err != nil {
			t.Fatal(err)
		}
		r.do()
		if p := r.only(wire.TypeData); p.Seq != uint32(packets) || p.Flags&wire.FlagLast == 0 || len(p.body) == 0 {
			t.Errorf("the request ends with %v", p)
		}
	}
}
