package machine

import (
	"io"
	"testing"

	"urnic/ulp/rx/wire"
)

// A datagram without a whole header is dropped in silence.
func TestShortDatagrams(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	h := r.header(wire.TypeData)
	b := h.Append(nil)
	for n := range wire.HeaderLen {
		r.Receive(0, there, b[:n])
	}
	r.quiet()
	if r.stats.Drops.Short != wire.HeaderLen {
		t.Errorf("%d dropped", r.stats.Drops.Short)
	}
}

// With call number 0, a server answers types that are not for a connection with its abort,
// and the connection stays dead; the obsolete types are ignored.
func TestTypesForAConnection(t *testing.T) {
	for ty := range wire.Type(16) {
		r := newServer(t, Config{}, Service{})
		r.data(1, 0, "abcd")
		r.take()
		h := r.header(ty)
		h.Call = 0
		r.says(h, nil)
		switch ty {
		case wire.TypeAbort, wire.TypeChallenge, wire.TypeResponse, wire.TypeParams1, wire.TypeParams2, wire.TypeParams3, wire.TypeVersion, wire.TypeDebug:
			for _, p := range r.take() {
				if p.Type == wire.TypeAbort {
					t.Errorf("%v: sent %v", ty, &p.Header)
				}
			}
		default:
			if p := r.only(wire.TypeAbort); p.Call != 0 || code(p) != int32(wire.ProtocolError) {
				t.Errorf("%v: sent %v", ty, &p.Header)
			}
			if r.calls[0].Err() == nil || r.stats.Drops.Type != 1 {
				t.Errorf("%v: the connection lives", ty)
			}
		}
	}
}

// With a call number, a server answers types that are not for a call with its abort; one that
// is over stays over. A client answers none.
func TestTypesForACall(t *testing.T) {
	for _, ty := range []wire.Type{0, 9, 10, 11, 12, 14, 15, 255, wire.TypeChallenge, wire.TypeResponse} {
		r := newServer(t, Config{}, Service{})
		k := r.served()
		r.take()
		r.says(r.header(ty), nil)
		if ty == wire.TypeChallenge || ty == wire.TypeResponse {
			r.quiet()
			continue
		}
		if p := r.only(wire.TypeAbort); p.Call != 1 || code(p) != int32(wire.ProtocolError) {
			t.Errorf("%v: sent %v", ty, &p.Header)
		}
		fails(t, k.Err(), wire.ProtocolError, false)

		r = newServer(t, Config{}, Service{})
		k = r.served()
		r.write(k, 1, true)
		k.End(0)
		r.acks(wire.ReasonIdle, 2, 0, "")
		r.take()
		r.says(r.header(ty), nil)
		r.quiet()

		c, k := newClient(t, Config{}, DialConfig{})
		c.write(k, 4, true)
		c.take()
		c.says(c.header(ty), nil)
		c.quiet()
		if k.Err() != nil {
			t.Errorf("%v: the client's call fails with %v", ty, k.Err())
		}
	}
}

// Sequence number 0, two last packets, and data behind the last one.
func TestSequenceNumbersThatCantBe(t *testing.T) {
	r := newServer(t, Config{}, Service{})
	r.data(1, 0, "abcd")
	r.data(0, 0, "zero")
	if r.stats.Drops.Seq != 1 || r.calls[0].Err() != nil {
		t.Error("sequence number 0 is taken")
	}
	for _, seqs := range [][2]uint32{{3, 4}, {4, 3}, {3, 2}} {
		r := newServer(t, Config{}, Service{})
		r.data(1, 0, "abcd")
		if seqs[1] > seqs[0] {
			r.data(seqs[0], wire.FlagLast, "")
			r.data(seqs[1], 0, "") // behind the last
		} else {
			r.data(seqs[0], 0, "")
			r.data(seqs[1], wire.FlagLast, "") // the last, before another one
		}
		sent := r.take()
		if p := sent[len(sent)-1]; p.Type != wire.TypeAbort || code(p) != int32(wire.ProtocolError) {
			t.Errorf("%v: sent %v", seqs, headers(sent))
		}
	}
	r = newServer(t, Config{}, Service{})
	r.data(1, 0, "abcd")
	r.data(3, wire.FlagLast, "")
	r.data(3, wire.FlagLast, "")
	r.data(2, 0, "")
	r.reads(r.calls[0], "abcd", io.EOF)
	r.data(1<<31, 0, "")
	if r.calls[0].Err() != nil {
		t.Error(r.calls[0].Err())
	}
}

// Acknowledgements of what was never sent: a first packet beyond, or 0, is dropped; of a list
// that is longer than what was sent, what was sent counts.
func TestAcknowledgementsOfWhatWasNeverSent(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	k.out.cwnd = 2
	r.write(k, 4*1416, false)
	r.take()
	for _, first := range []uint32{0, 4, 5, 1 << 31, 1<<32 - 1} {
		r.acks(wire.ReasonIdle, first, 0, "+++")
	}
	if k.out.packets.base != 1 || k.out.soft != 0 || r.stats.Drops.Ack != 5 {
		t.Errorf("base %d, %d dropped", k.out.packets.base, r.stats.Drops.Ack)
	}
	k.out.cwnd = 1 // nothing more leaves
	r.acks(wire.ReasonIdle, 1, 0, "--++++++++")
	if k.out.packets.at(3).held || k.out.packets.at(4).held || r.stats.Drops.Ack != 6 {
		t.Error("what was never sent is held")
	}
	h := r.header(wire.TypeAck)
	a := wire.Ack{Reason: wire.ReasonIdle, First: 1, Count: 200, Acks: []byte{1}}
	r.says(h, a.Append(nil)) // it says 200, and has one
	if !k.out.packets.at(1).held || k.out.packets.at(2).held {
		t.Error("a lying count is believed")
	}
	for n := range 18 {
		r.says(r.header(wire.TypeAck), make([]byte, n))
	}
	if r.stats.Drops.Ack != 24 || k.Err() != nil {
		t.Errorf("%d dropped", r.stats.Drops.Ack)
	}
}

// Of a jumbogram that is cut short, the packets that are whole count; one that is too short to
// be any is a plain packet.
func TestJumbogramsCutShort(t *testing.T) {
	whole := append([]byte(nil), pattern(1412)...)
	whole = wire.AppendJumboHeader(whole, wire.FlagJumbo, 0)
	whole = append(whole, pattern(1412)...)
	whole = wire.AppendJumboHeader(whole, wire.FlagLast, 0)
	for _, n := range []int{0, 1, 1412, 1415, 1416, 1417, 2827, 2832} {
		r := newServer(t, Config{}, Service{})
		h := r.header(wire.TypeData)
		h.Seq, h.Flags = 1, h.Flags|wire.FlagJumbo
		r.says(h, whole[:n])
		want := string(whole[:min(n, 1412)])
		cut := uint32(1)
		switch {
		case n < 1416:
			want, cut = string(whole[:n]), 0
		case n == 2832:
			want, cut = want+want, 0
		}
		if r.stats.Drops.Jumbo != cut {
			t.Errorf("%d bytes: %d are cut short", n, r.stats.Drops.Jumbo)
		}
		if got, _ := r.read(r.calls[0]); got != want {
			t.Errorf("%d bytes: %d are read; want %d", n, len(got), len(want))
		}
	}
}
