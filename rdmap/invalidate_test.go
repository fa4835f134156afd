package rdmap

import (
	"testing"

	"urnic/pd"
	"urnic/stag"
)

func TestSendWithInvalidateInvalidatesTheSTag(t *testing.T) {
	for _, op := range []Opcode{OpSendInvalidate, OpSendSEInvalidate} {
		s, p := withPeer(t, Config{})
		r := s.memory(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteInvalidate)
		s.post(16, 16)
		s.onDeliver = func(Delivery) {
			if r.entry.Valid() {
				t.Error("the ULP was told before the STag was invalid")
			}
		}
		p.send(untagged(op, []byte("some")), more, invalidating(r.tag))
		if !r.entry.Valid() {
			t.Error("the STag was invalidated before the message was delivered")
		}
		p.send(untagged(op, []byte("thing")), mo(4), invalidating(r.tag))
		if want := (Delivery{Op: op, Length: 9, Invalidated: r.tag}); s.err != nil || len(s.delivered) != 1 || s.delivered[0] != want {
			t.Fatalf("%v; delivered %+v; want %+v", s.err, s.delivered, want)
		}
		p.send(tagged(OpWrite, r.tag, base, []byte("late")))
		p.wantTerminate(0x1100)
		if string(r.mem[:4]) == "late" {
			t.Error("an invalidated STag was written to")
		}
	}
}

func TestSendWithInvalidateChecksInOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		tag  func(s *side) stag.STag
		want TermCode
	}{
		{"STag not valid", func(s *side) stag.STag {
			return s.memory(8, stag.RemoteInvalidate).tag ^ 1
		}, 0x0100},
		{"STag 0", func(*side) stag.STag { return 0 }, 0x0100},
		{"STag invalidated before", func(s *side) stag.STag {
			r := s.memory(8, stag.RemoteInvalidate)
			if err := s.table.Invalidate(r.tag, s.scope); err != nil {
				t.Fatal(err)
			}
			return r.tag
		}, 0x0100},
		{"STag of another stream", func(s *side) stag.STag {
			return s.register(stag.Memory{Mem: make([]byte, 8), Access: stag.RemoteInvalidate, Stream: s.scope.Stream + 1}).tag
		}, 0x0109},
		{"STag of another PD", func(s *side) stag.STag {
			d, _ := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
			e, err := s.table.Register(d, stag.Memory{Mem: make([]byte, 8), Access: stag.RemoteInvalidate})
			if err != nil {
				t.Fatal(err)
			}
			return e.STag()
		}, 0x0109},
		{"STag that a peer must not invalidate", func(s *side) stag.STag {
			return s.memory(8, stag.LocalWrite|stag.RemoteWrite).tag
		}, 0x0109},
		{"STag that other streams can use", func(s *side) stag.STag {
			if err := s.domain.Reserve(pd.QueuePairs, 2); err != nil {
				t.Fatal(err)
			}
			return s.memory(8, stag.RemoteInvalidate).tag
		}, 0x0109},
		{"region with a window", func(s *side) stag.STag {
			r := s.memory(8, stag.RemoteInvalidate|stag.BindWindow)
			w, err := s.table.AllocateWindow(s.domain, stag.Window1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Bind(stag.Binding{Region: r.entry, Base: base, Len: 8, Access: stag.RemoteRead, By: s.scope}); err != nil {
				t.Fatal(err)
			}
			return r.tag
		}, 0x0109},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, op := range []Opcode{OpSendInvalidate, OpSendSEInvalidate} {
				s, p := withPeer(t, Config{})
				s.post(8)
				tag := tt.tag(s)
				p.send(untagged(op, []byte("payload")), invalidating(tag))
				p.wantTerminate(tt.want)
				if len(s.delivered) != 0 {
					t.Errorf("delivered %+v", s.delivered)
				}
			}
		})
	}
	t.Run("version first", func(t *testing.T) {
		_, p := withPeer(t, Config{})
		p.side.post(8)
		p.send(untagged(OpSendInvalidate, nil), invalidating(0), rdmapVersion(2))
		p.wantTerminate(CodeInvalidVersion)
	})
	t.Run("buffer first", func(t *testing.T) {
		_, p := withPeer(t, Config{})
		p.send(untagged(OpSendInvalidate, nil), invalidating(0))
		p.wantTerminate(0x1202)
	})
}
