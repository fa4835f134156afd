//go:build interop

package interop

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"urnic/ulp/rds"
)

// rdmaSizes are of regions: siw maps no more than two pages for RDS.
var rdmaSizes = []int{1, 1000, 4096, 8000}

// linuxOffers has Linux offer memory by cookie, which we write.
func (s sides) linuxOffers(t testing.TB) {
	n := s.overIWARP(t, nil)
	ctx, cancel := n.patient()
	defer cancel()
	socket := n.bind(ourPort, 1)[0]
	for _, once := range []string{"", "-o"} {
		offer := s.rdspeer(t, "-p %d -A %s -P %d -s %s %s offer", guestPort, s.ours, ourPort, sizeList(rdmaSizes), once)
		for _, size := range rdmaSizes {
			msg, err := socket.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("write %d", size); string(msg.Data) != want || msg.Cookie == (rds.Message{}).Cookie {
				t.Fatalf("Linux asks %q with the cookie %v", msg.Data, msg.Cookie)
			}
			op := rds.Write(msg.Cookie, 0, rdsMessage(size, uint64(size)))
			if _, err := socket.Send(ctx, &rds.Message{Addr: msg.Addr, Data: []byte("done")}, rds.With(op)); err != nil {
				t.Fatal(err)
			}
			if err := op.Wait(ctx); err != nil {
				t.Errorf("writing %d bytes: %v", size, err)
			}
		}
		out := offer.wait()
		if got := strings.Count(out, "memory=ok reply=done"); got != len(rdmaSizes) {
			t.Errorf("%d of %d regions of Linux's are as written:\n%s", got, len(rdmaSizes), out)
		}
	}
	s.wantQuiet(n)
}

// weOffer has us offer memory by cookie, which Linux writes.
func (s sides) weOffer(t testing.TB) {
	n := s.overIWARP(t, nil)
	ctx, cancel := n.patient()
	defer cancel()
	socket := n.bind(ourPort, 1)[0]
	serve := s.rdspeer(t, "-p %d -c %d serve", guestPort, 2*len(rdmaSizes))
	serve.expect("ready")
	for _, options := range [][]rds.MROption{{rds.ReadWrite()}, {rds.ReadWrite(), rds.UseOnce()}} {
		for _, size := range rdmaSizes {
			mem := make([]byte, size)
			mr, err := socket.GetMR(mem, options...)
			if err != nil {
				t.Fatal(err)
			}
			ask := &rds.Message{Addr: at(s.theirs, guestPort), Data: fmt.Appendf(nil, "write %d", size), Cookie: mr.Cookie()}
			if _, err := socket.Send(ctx, ask); err != nil {
				t.Fatal(err)
			}
			msg, err := socket.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if msg.RKey != mr.Cookie().RKey() || string(msg.Data) != "done" {
				t.Errorf("%d bytes: the answer is %q, for key %#x", size, msg.Data, msg.RKey)
			}
			if !bytes.Equal(mem, rdsMessage(size, uint64(size))) {
				t.Errorf("%d bytes: the memory is not as Linux should have written it", size)
			}
			if len(options) > 1 {
				<-mr.Freed()
			}
			if err := mr.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if out := serve.wait(); strings.Count(out, "status=0") != 2*len(rdmaSizes) {
		t.Errorf("not all of Linux's Writes are complete:\n%s", out)
	}
	s.wantQuiet(n)
}
