package mpa

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
)

// inRole starts a connection of revision 1 in a bubble, against a peer whose
// frame has these flags. A Responder has received the peer's first FPDU, with
// an empty ULPDU, so that it may send.
func inRole(t *testing.T, role Role, cfg Config, flags byte, f func(t *testing.T, c *Conn, p *peer, out, in *Framer)) {
	t.Helper()
	cfg.Revision = Revision1
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		var c *Conn
		if role == Initiator {
			c = initiated(t, conn, p, cfg, frame(repKey, flags, 1))
		} else {
			c, _ = responded(t, conn, p, cfg, frame(reqKey, flags, 1))
		}
		crc := cfg.CRC != CRCOff || flags&0x40 != 0
		out := &Framer{CRC: crc, Markers: flags&0x80 != 0}
		in := &Framer{CRC: crc, Markers: cfg.Markers}
		if role == Responder {
			p.says(fpdus(in, nil))
			if err := c.Receive(ignore); err != nil {
				t.Fatal(err)
			}
		}
		f(t, c, p, out, in)
	})
}

// usesCRC finds out by its bytes whether a connection generates CRCs and
// whether it checks them.
func usesCRC(t *testing.T, role Role, policy CRCPolicy, flags byte) (generates, checks bool) {
	t.Helper()
	inRole(t, role, Config{CRC: policy}, flags, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
		right := fpdus(&Framer{CRC: true}, []byte("abcd"))
		for range 3 {
			post(t, c, "abcd")
			flush(t, c)
			generates = bytes.Equal(p.hears(len(right)), right)
		}
		box := receives(c)
		for range 2 {
			p.says(right)
		}
		if got, err := box.now(); len(got) != 2 || err != nil {
			t.Errorf("FPDUs with a right CRC: %q, %v", got, err)
		}
		wrong := slices.Clone(right)
		wrong[len(wrong)-1] ^= 1
		p.says(wrong)
		_, err := box.now()
		if checks = err != nil; checks {
			wantCode(t, "a wrong CRC", err, CodeCRC)
		}
		if c.Params().CRC != checks {
			t.Errorf("Params say CRC %v", c.Params().CRC)
		}
	})
	return generates, checks
}

func TestCRCIsOnByDefault(t *testing.T) {
	for _, role := range []Role{Initiator, Responder} {
		var cfg Config
		if generates, checks := usesCRC(t, role, cfg.CRC, 0); !generates || !checks {
			t.Errorf("%v: generates %v, checks %v", role, generates, checks)
		}
	}
	s := negotiate(t, Config{}, Config{})
	if !s.req.CRC || !s.rep.CRC {
		t.Errorf("C is not set in %v or %v", s.req, s.rep)
	}
}

func TestCRCIsUsedWhenEitherSideAsks(t *testing.T) {
	for _, role := range []Role{Initiator, Responder} {
		for _, tt := range []struct {
			policy CRCPolicy
			flags  byte
		}{{CRCPrefer, 0}, {CRCPrefer, 0x40}, {CRCOff, 0x40}, {CRCRequire, 0}, {CRCRequire, 0x40}} {
			if generates, checks := usesCRC(t, role, tt.policy, tt.flags); !generates || !checks {
				t.Errorf("%v, policy %v, peer's flags %02x: generates %v, checks %v", role, tt.policy, tt.flags, generates, checks)
			}
		}
	}
}

func TestCRCIsGivenUpOnlyWhenBothSidesAsk(t *testing.T) {
	for _, role := range []Role{Initiator, Responder} {
		if _, checks := usesCRC(t, role, CRCOff, 0); checks {
			t.Errorf("%v checks CRCs that neither side asked for", role)
		}
		for _, policy := range []CRCPolicy{CRCPrefer, CRCOff} {
			for _, flags := range []byte{0, 0x40} {
				if policy == CRCOff && flags == 0 {
					continue
				}
				if _, checks := usesCRC(t, role, policy, flags); !checks {
					t.Errorf("%v, policy %v, peer's flags %02x: CRCs were given up", role, policy, flags)
				}
			}
		}
	}
	// What we ask for stands in our frame.
	for _, policy := range []CRCPolicy{CRCPrefer, CRCRequire, CRCOff} {
		s := negotiate(t, Config{CRC: policy}, Config{CRC: policy})
		if want := policy != CRCOff; s.req.CRC != want || s.rep.CRC != want {
			t.Errorf("policy %v: C is %v and %v", policy, s.req.CRC, s.rep.CRC)
		}
	}
}

func TestCRCChoiceIsInvisibleToDDP(t *testing.T) {
	type seen struct {
		ulpdus  []string
		mulpdu  int
		posted  uint64
		parsed  Params
		postErr error
	}
	var views []seen
	for _, policy := range []CRCPolicy{CRCPrefer, CRCOff} {
		inRole(t, Initiator, Config{CRC: policy}, 0, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
			p.says(fpdus(in, []byte("one"), nil, make([]byte, 5000)))
			v := seen{mulpdu: c.MULPDU(), parsed: c.Params()}
			v.ulpdus, _ = receives(c).now()
			_, v.postErr = c.Post(make([]byte, 100), [][]byte{make([]byte, 5001)}, true)
			flush(t, c)
			v.posted = c.Posted()
			v.parsed.CRC = false // the one thing that tells
			views = append(views, v)
		})
	}
	if with, without := fmt.Sprintf("%+v", views[0]), fmt.Sprintf("%+v", views[1]); with != without {
		t.Errorf("with CRC    %s\nwithout CRC %s", with, without)
	}
}

func TestMarkersAreSentIfAndOnlyIfThePeerRequiresThem(t *testing.T) {
	ulpdus := [][]byte{[]byte("first"), make([]byte, 1500), make([]byte, 100), []byte("last")}
	for _, role := range []Role{Initiator, Responder} {
		for _, ours := range []bool{false, true} {
			for _, theirs := range []bool{false, true} {
				flags := byte(0x40)
				if theirs {
					flags |= 0x80
				}
				inRole(t, role, Config{Markers: ours}, flags, func(t *testing.T, c *Conn, p *peer, out, in *Framer) {
					if p := c.Params(); p.SendMarkers != theirs || p.RecvMarkers != ours {
						t.Errorf("settled %+v", p)
					}
					if want := MULPDU(DefaultEMSS, theirs); c.MULPDU() != want {
						t.Errorf("MULPDU %d; want %d", c.MULPDU(), want)
					}
					for _, u := range ulpdus {
						post(t, c, string(u))
					}
					flush(t, c)
					want := fpdus(out, ulpdus...)
					if theirs && !bytes.Equal(want[:4], make([]byte, 4)) {
						t.Fatalf("the first marker is %x", want[:4])
					}
					p.expects(want)
					p.says(fpdus(in, ulpdus...))
					synctest.Wait()
					if got, err := receives(c).now(); err != nil || len(got) != 4 || got[0] != "first" || got[3] != "last" {
						t.Errorf("%v, ours %v, theirs %v: received %d ULPDUs, %v", role, ours, theirs, len(got), err)
					}
				})
			}
		}
	}
	s := negotiate(t, Config{Markers: true}, Config{})
	if !s.req.Markers || s.rep.Markers {
		t.Errorf("M is %v and %v", s.req.Markers, s.rep.Markers)
	}
	s = negotiate(t, Config{}, Config{Markers: true})
	if s.req.Markers || !s.rep.Markers {
		t.Errorf("M is %v and %v", s.req.Markers, s.rep.Markers)
	}
}
