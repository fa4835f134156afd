package mpa

import (
	"errors"
	"fmt"
	"testing"
)

func TestResponderFitsIRDAndORDToTheRequest(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cfg      Config
		req      Enhanced
		ird, ord uint16
	}{
		{"equal", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 4, ORD: 4}, 4, 4},
		{"initiator wants less", Config{IRD: 8, ORD: 8}, Enhanced{IRD: 8, ORD: 2}, 2, 8},
		{"initiator takes less", Config{IRD: 8, ORD: 8}, Enhanced{IRD: 2, ORD: 8}, 8, 2},
		{"initiator wants more", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 9, ORD: 9}, 4, 4},
		{"initiator takes none", Config{IRD: 8, ORD: 8}, Enhanced{IRD: 0, ORD: 0}, 0, 0},
		{"responder has none", Config{}, Enhanced{IRD: 8, ORD: 8}, 0, 0},
		{"the most", Config{IRD: MaxDepth, ORD: MaxDepth}, Enhanced{IRD: MaxDepth, ORD: MaxDepth}, MaxDepth, MaxDepth},
		{"the ULP's depths do not lift the limit", Config{ULPDepths: true, IRD: 8, ORD: 8}, Enhanced{IRD: 3, ORD: 3}, 3, 3},
		{"room for a Read as RTR", Config{IRD: 4}, Enhanced{PeerToPeer: true, RTR: RTRRead, IRD: 4, ORD: 0}, 1, 0},
		{"room for a Read as RTR, IRD 0", Config{}, Enhanced{PeerToPeer: true, RTR: RTRRead, IRD: 4, ORD: 0}, 1, 0},
		{"no room for one RTR of several, IRD 0", Config{}, Enhanced{PeerToPeer: true, RTR: RTRAll, IRD: 4, ORD: 4}, 0, 0},
		{"no room for a Write as RTR", Config{IRD: 4}, Enhanced{PeerToPeer: true, RTR: RTRWrite, IRD: 4, ORD: 0}, 0, 0},
		{"no room for a Read that we do not take", Config{IRD: 4, RTR: RTRSend}, Enhanced{PeerToPeer: true, RTR: RTRSend | RTRRead, ORD: 0}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rep, p, err := tt.cfg.respond(requestOf(t, tt.req), nil)
			if err != nil {
				t.Fatal(err)
			}
			if p.IRD != tt.ird || p.ORD != tt.ord {
				t.Errorf("settled IRD %d, ORD %d; want %d, %d", p.IRD, p.ORD, tt.ird, tt.ord)
			}
			if e := enhanced(t, &rep); e.IRD != tt.ird || e.ORD != tt.ord || rep.Rejected {
				t.Errorf("replied %v, rejected %v; want IRD %d, ORD %d", e, rep.Rejected, tt.ird, tt.ord)
			}
		})
	}
}

func TestResponderRejectsWhenTheInitiatorsIRDIsTooSmall(t *testing.T) {
	c := Config{IRD: 8, ORD: 8, MinORD: 4, PrivateData: []byte("why")}
	for ird := range uint16(8) {
		rep, p, err := c.respond(requestOf(t, Enhanced{IRD: ird, ORD: 1}), c.PrivateData)
		if ird >= 4 {
			if err != nil || rep.Rejected || p.ORD != ird {
				t.Errorf("IRD %d: ORD %d, %v; want it accepted", ird, p.ORD, err)
			}
			continue
		}
		e := wantCode(t, fmt.Sprintf("IRD %d", ird), err, CodeInsufficientIRD)
		if e.TermWord() != 0x2006 {
			t.Errorf("IRD %d: Terminate word %#x; want 0x2006", ird, e.TermWord())
		}
		if got := enhanced(t, &rep); !rep.Rejected || got.ORD != 4 || string(rep.ULPData()) != "why" {
			t.Errorf("IRD %d: %v; want a rejection that asks for 4", ird, &rep)
		}
	}
}

func TestInitiatorFitsIRDAndORDToTheReply(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cfg      Config
		rep      Enhanced
		ird, ord uint16
		code     Code
	}{
		{"equal", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 4, ORD: 4}, 4, 4, 0},
		{"responder takes less", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 2, ORD: 4}, 4, 2, 0},
		{"responder takes none", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 0, ORD: 0}, 4, 0, 0},
		{"responder takes more", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 9, ORD: 4}, 4, 4, 0},
		{"responder wants less", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 4, ORD: 1}, 4, 4, 0},
		{"responder wants more than there is", Config{IRD: 4, ORD: 4}, Enhanced{IRD: 4, ORD: 5}, 0, 0, CodeInsufficientIRD},
		{"responder wants more, and gets it", Config{IRD: 4, ORD: 4, MaxIRD: 6}, Enhanced{IRD: 4, ORD: 6}, 6, 4, 0},
		{"responder wants even more", Config{IRD: 4, ORD: 4, MaxIRD: 6}, Enhanced{IRD: 4, ORD: 7}, 0, 0, CodeInsufficientIRD},
		{"a smaller MaxIRD means nothing", Config{IRD: 4, ORD: 4, MaxIRD: 2}, Enhanced{IRD: 4, ORD: 3}, 4, 4, 0},
		{"the ULP's depths", Config{IRD: 4, ORD: 4, ULPDepths: true, PeerToPeer: true}, Enhanced{PeerToPeer: true, RTR: RTRAll, IRD: 1, ORD: 9}, 4, 4, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := tt.cfg.request()
			if err != nil {
				t.Fatal(err)
			}
			p, err := tt.cfg.complete(&req, replyOf(t, tt.rep))
			if tt.code != 0 {
				if e := wantCode(t, "complete", err, tt.code); e.TermWord() != 0x2006 {
					t.Errorf("Terminate word %#x; want 0x2006", e.TermWord())
				}
				if p.Role != Initiator || !p.CRC || p.Revision != 2 {
					t.Errorf("no Terminate can be sent under %+v", p)
				}
				return
			}
			if err != nil || p.IRD != tt.ird || p.ORD != tt.ord {
				t.Errorf("settled IRD %d, ORD %d, %v; want %d, %d", p.IRD, p.ORD, err, tt.ird, tt.ord)
			}
		})
	}
}

// "initiator ORD <= responder IRD, responder ORD <= initiator IRD": RFC 6581 §9.1.
func TestSettledDepthsFitEachOther(t *testing.T) {
	depths := []uint16{0, 1, 2, 16, MaxDepth}
	for _, ird := range depths {
		for _, ord := range depths {
			for _, ird2 := range depths {
				for _, ord2 := range depths {
					for _, p2p := range []bool{false, true} {
						s := negotiate(t, Config{IRD: ird, ORD: ord, PeerToPeer: p2p}, Config{IRD: ird2, ORD: ord2})
						if s.iniErr != nil || s.resErr != nil {
							t.Fatalf("%d/%d and %d/%d: %v, %v", ird, ord, ird2, ord2, s.iniErr, s.resErr)
						}
						if s.ini.ORD > s.res.IRD || s.res.ORD > s.ini.IRD || s.ini.ORD > ord || s.res.ORD > ord2 {
							t.Errorf("%d/%d and %d/%d settle on %d/%d and %d/%d",
								ird, ord, ird2, ord2, s.ini.IRD, s.ini.ORD, s.res.IRD, s.res.ORD)
						}
					}
				}
			}
		}
	}
}

func TestIRDAndORDOf3FFFAreLeftAlone(t *testing.T) {
	const no = DepthNotNegotiated
	t.Run("responder", func(t *testing.T) {
		for _, tt := range []struct {
			req, rep Enhanced
			ird, ord uint16
		}{
			{Enhanced{IRD: 2, ORD: no}, Enhanced{IRD: no, ORD: 2}, 6, 2},
			{Enhanced{IRD: no, ORD: 2}, Enhanced{IRD: 2, ORD: no}, 2, 5},
			{Enhanced{IRD: no, ORD: no}, Enhanced{IRD: no, ORD: no}, 6, 5},
		} {
			c := Config{IRD: 6, ORD: 5}
			rep, p, err := c.respond(requestOf(t, tt.req), nil)
			if err != nil || p.IRD != tt.ird || p.ORD != tt.ord {
				t.Errorf("%v: settled IRD %d, ORD %d, %v; want %d, %d", tt.req, p.IRD, p.ORD, err, tt.ird, tt.ord)
			}
			if e := enhanced(t, &rep); e != tt.rep {
				t.Errorf("%v: replied %v; want %v", tt.req, e, tt.rep)
			}
		}
		c := Config{ORD: 5, MinORD: 5}
		if _, _, err := c.respond(requestOf(t, Enhanced{IRD: no}), nil); err != nil {
			t.Errorf("IRD not negotiated: %v", err)
		}
	})
	t.Run("initiator", func(t *testing.T) {
		for _, tt := range []struct {
			rep      Enhanced
			ird, ord uint16
		}{
			{Enhanced{IRD: no, ORD: 2}, 6, 5},
			{Enhanced{IRD: 2, ORD: no}, 6, 2},
			{Enhanced{IRD: no, ORD: no}, 6, 5},
		} {
			c := Config{IRD: 6, ORD: 5}
			p, err := c.complete(requestOf(t, Enhanced{IRD: 6, ORD: 5}), replyOf(t, tt.rep))
			if err != nil || p.IRD != tt.ird || p.ORD != tt.ord {
				t.Errorf("%v: settled IRD %d, ORD %d, %v; want %d, %d", tt.rep, p.IRD, p.ORD, err, tt.ird, tt.ord)
			}
		}
	})
	t.Run("both", func(t *testing.T) {
		s := negotiate(t, Config{IRD: 6, ORD: 5, ULPDepths: true, PeerToPeer: true}, Config{IRD: 3, ORD: 2})
		if e := enhanced(t, s.req); e.IRD != no || e.ORD != no {
			t.Errorf("requested %v", e)
		}
		if s.iniErr != nil || s.ini.IRD != 6 || s.ini.ORD != 5 || s.res.IRD != 3 || s.res.ORD != 2 {
			t.Errorf("settled %+v and %+v, %v", s.ini, s.res, errors.Join(s.iniErr, s.resErr))
		}
	})
}
