package rdmap

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"urnic/stag"
)

// A stream that refuses a right refuses it though the STag grants it, and no other one.
func TestStreamRefusesWhatTheSTagGrants(t *testing.T) {
	const all = stag.LocalWrite | stag.RemoteRead | stag.RemoteWrite | stag.RemoteAtomic
	for _, tt := range []struct {
		name string
		need stag.Access
		send func(p *peer, tag stag.STag)
		want TermCode
	}{
		{"RDMA Write", stag.RemoteWrite, func(p *peer, tag stag.STag) { p.send(tagged(OpWrite, tag, base, []byte("12345678"))) }, 0x1102},
		{"RDMA Read", stag.RemoteRead, func(p *peer, tag stag.STag) {
			p.send(readRequest(ReadRequest{Size: 8, SrcSTag: tag, SrcTO: base}))
		}, 0x0102},
		{"atomic", stag.RemoteAtomic, func(p *peer, tag stag.STag) { p.send(atomicRequest(AtomicRequest{STag: tag, TO: base, AddSwap: 1})) }, 0x0102},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var refused atomic.Uint32
			s, p := withPeer(t, Config{IRD: 1, Refused: &refused})
			r := s.memory(8, all)
			refused.Store(uint32(all &^ tt.need))
			if tt.send(p, r.tag); s.err != nil {
				t.Fatalf("other rights are refused, and this one too: %v", s.err)
			}
			p.collect()
			p.seen = len(p.ref.messages)
			before := bytes.Clone(r.mem)
			refused.Store(uint32(tt.need))
			tt.send(p, r.tag)
			access, ok := errors.AsType[*stag.AccessError](s.err)
			if !ok || !access.Refused || access.Violation != stag.NoRights || access.STag != r.tag || access.Wanted != tt.need ||
				access.TO != base || access.Len != 8 {
				t.Errorf("the error is %v: %+v", s.err, access)
			}
			if term := p.terminate(); term.Code != tt.want {
				t.Errorf("Terminate %v; want %v", &term, tt.want)
			}
			if !bytes.Equal(r.mem, before) {
				t.Errorf("the memory has changed from %x to %x", before, r.mem)
			}
		})
	}
}
