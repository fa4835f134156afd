package machine

import (
	"testing"

	"urnic/ulp/rx/wire"
)

// In congestion avoidance an acknowledgement counts once, however many packets it is of; slow
// start ends at the threshold.
func TestAcknowledgementsOfManyPackets(t *testing.T) {
	for _, step := range []struct{ cwnd, ssthresh, fresh, want int }{
		{10, 5, 4, 11}, {5, 5, 4, 6}, {3, 8, 2, 5}, {3, 8, 20, 8}, {7, 8, 0, 7}, {8, 8, 0, 8}, {255, 8, 1, 255},
	} {
		c := congestion{cwnd: step.cwnd, ssthresh: step.ssthresh}
		if c.positive(step.fresh); c.cwnd != step.want {
			t.Errorf("%+v: cwnd %d", step, c.cwnd)
		}
	}
}

// Three negative acknowledgements mean a loss if they come in a row, or one that is of three
// packets behind the hole.
func TestNegativeAcknowledgementsInARow(t *testing.T) {
	c := congestion{cwnd: 20, ssthresh: 255}
	for range 2 {
		if c.negative(1, 32) {
			t.Fatal("two are a loss")
		}
	}
	c.positive(1)
	if c.negative(1, 32) || c.negative(0, 32) {
		t.Fatal("a positive one between does not count")
	}
	if !c.negative(1, 32) || c.ssthresh != 10 || c.cwnd != 13 {
		t.Errorf("three give cwnd %d, ssthresh %d", c.cwnd, c.ssthresh)
	}
	c = congestion{cwnd: 20, ssthresh: 255}
	if !c.negative(3, 10) || c.ssthresh != 5 {
		t.Errorf("one of three packets gives ssthresh %d", c.ssthresh)
	}
	c = congestion{cwnd: 1, ssthresh: 255}
	if c.timeout(32); c.ssthresh != minSSThresh || c.cwnd != 1 {
		t.Errorf("a timeout with one packet gives cwnd %d, ssthresh %d", c.cwnd, c.ssthresh)
	}
}

// Packets that a negative acknowledgement tells of go alone, though jumbograms
// continue.
func TestHolesAreFilledWithSinglePackets(t *testing.T) {
	r, k := steady(t, Config{})
	k.c.peer.confirmed, k.out.inRow = 5688, 9
	r.write(k, 8*1412, false)
	if sent := r.take(); len(sent) != 8 || sent[0].size != 5688 {
		t.Fatalf("sent: %v", headers(sent))
	}
	r.acks(wire.ReasonOutOfSequence, 2, 0, "---+++++")
	sent := r.take()
	if len(sent) != 3 || r.stats.Pushed != 3 {
		t.Fatalf("sent again: %v", headers(sent))
	}
	for i, p := range sent {
		if p.Seq != uint32(2+i) || p.size == 0 || p.Flags&wire.FlagJumbo != 0 {
			t.Errorf("sent again: %v in %d bytes", &p.Header, p.size)
		}
	}
}

// In recovery, a packet whose newest copy left shortly before what is acknowledged may be on
// its way; one that left long before is lost again.
func TestHolesThatAreLostAgain(t *testing.T) {
	r, k := steady(t, Config{})
	r.write(k, 6*1412, false)
	sent := r.take()
	r.acks(wire.ReasonOutOfSequence, 2, 0, "-+++")
	again := r.only(wire.TypeData)
	r.acks(wire.ReasonRequested, 2, sent[len(sent)-1].Serial, "-++++")
	r.quiet()
	r.acks(wire.ReasonRequested, 2, again.Serial+nackLimit, "-+++++")
	if p := r.only(wire.TypeData); p.Seq != 2 {
		t.Errorf("sent again: %v", &p.Header)
	}
}
