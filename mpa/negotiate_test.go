package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// wire sends a frame through its bytes.
func wire(t *testing.T, f *Frame) *Frame {
	t.Helper()
	b, err := f.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	back, n, err := ParseFrame(b)
	if err != nil || n != len(b) {
		t.Fatalf("%v came back as %d of %d octets, %v", f, n, len(b), err)
	}
	return &back
}

// A settlement is what both sides make of a negotiation.
type settlement struct {
	req, rep       *Frame
	ini, res       Params
	iniErr, resErr error
}

// negotiate runs the pure part of a start-up.
func negotiate(t *testing.T, initiator, responder Config) (s settlement) {
	t.Helper()
	for _, c := range []Config{initiator, responder} {
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	req, err := initiator.request()
	if err != nil {
		t.Fatal(err)
	}
	s.req = wire(t, &req)
	if err := responder.checkRequest(s.req); err != nil {
		s.resErr = err
		return s
	}
	rep, p, err := responder.respond(s.req, responder.PrivateData)
	s.res, s.resErr = p, err
	s.rep = wire(t, &rep)
	s.ini, s.iniErr = initiator.complete(s.req, s.rep)
	return s
}

// enhanced reads the enhanced block of a frame.
func enhanced(t *testing.T, f *Frame) Enhanced {
	t.Helper()
	if !f.Enhanced {
		t.Fatalf("%v has no enhanced block", f)
	}
	e, err := ParseEnhanced(f.PrivateData)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// requestOf and replyOf return revision 2 frames with an enhanced block.
func requestOf(t *testing.T, e Enhanced) *Frame { return enhancedFrame(t, false, e) }
func replyOf(t *testing.T, e Enhanced) *Frame   { return enhancedFrame(t, true, e) }

func enhancedFrame(t *testing.T, reply bool, e Enhanced) *Frame {
	t.Helper()
	pd, err := e.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Frame{Reply: reply, Revision: 2, CRC: true, Enhanced: true, PrivateData: pd}
}

func TestRevisionIsOneUnlessEnhanced(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		rev  byte
		s    bool
	}{
		{"depths to negotiate", Config{}, 2, true},
		{"nothing enhanced wanted", Config{ULPDepths: true}, 1, false},
		{"peer-to-peer wanted", Config{ULPDepths: true, PeerToPeer: true}, 2, true},
		{"revision 1 pinned", Config{Revision: 1, IRD: 4, ORD: 4}, 1, false},
		{"revision 2 pinned, nothing enhanced wanted", Config{Revision: 2, ULPDepths: true}, 2, false},
		{"revision 2 pinned", Config{Revision: 2}, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.PrivateData = []byte("pd")
			s := negotiate(t, tt.cfg, Config{})
			if s.iniErr != nil || s.resErr != nil {
				t.Fatal(s.iniErr, s.resErr)
			}
			for _, f := range []*Frame{s.req, s.rep} {
				if f.Revision != tt.rev || f.Enhanced != tt.s {
					t.Errorf("%v; want revision %d, S %v", f, tt.rev, tt.s)
				}
			}
			if !tt.s && string(s.req.PrivateData) != "pd" {
				t.Errorf("private data %q of an unenhanced Request", s.req.PrivateData)
			}
		})
	}
}

func TestNegotiatedRevisionIsReported(t *testing.T) {
	for _, tt := range []struct {
		initiator, responder Config
		want                 uint8
	}{
		{Config{}, Config{}, 2},
		{Config{Revision: 1}, Config{}, 1},
		{Config{Revision: 2}, Config{}, 2},
		{Config{}, Config{Revision: 2}, 2},
		{Config{ULPDepths: true}, Config{Revision: 1}, 1},
	} {
		s := negotiate(t, tt.initiator, tt.responder)
		if s.iniErr != nil || s.resErr != nil || s.ini.Revision != tt.want || s.res.Revision != tt.want {
			t.Errorf("%+v: revision %d, %v and %d, %v; want %d", tt, s.ini.Revision, s.iniErr, s.res.Revision, s.resErr, tt.want)
		}
	}
}

func TestEnhancedRequestGetsAnEnhancedReply(t *testing.T) {
	for _, pin := range []uint8{0, Revision2} {
		for _, e := range []Enhanced{{}, {IRD: 3, ORD: 3}, {PeerToPeer: true, RTR: RTRAll}} {
			c := Config{Revision: pin, ULPDepths: true} // even if it has nothing to say by itself
			rep, p, err := c.respond(requestOf(t, e), nil)
			if err != nil || rep.Revision != 2 || !rep.Enhanced || !p.Enhanced {
				t.Errorf("%+v answered with %v, %v", e, &rep, err)
			}
		}
	}
	var c Config
	if _, err := c.complete(requestOf(t, Enhanced{}), &Frame{Reply: true, Revision: 2, CRC: true}); err == nil {
		t.Error("an Initiator takes an unenhanced Reply to an enhanced Request")
	}
}

func TestUnenhancedRequestGetsAnUnenhancedReply(t *testing.T) {
	for _, rev := range []uint8{1, 2} {
		req := Frame{Revision: rev, PrivateData: []byte("abcdefgh")}
		c := Config{IRD: 5, ORD: 6, MinORD: 3, PrivateData: []byte("reply")}
		if err := c.checkRequest(&req); err != nil {
			t.Errorf("revision %d: %v", rev, err)
		}
		rep, p, err := c.respond(&req, c.PrivateData)
		if err != nil || rep.Revision != rev || rep.Enhanced || rep.Rejected || string(rep.PrivateData) != "reply" {
			t.Errorf("revision %d answered with %v, %q, %v", rev, &rep, rep.PrivateData, err)
		}
		if string(p.PrivateData) != "abcdefgh" || p.Enhanced || p.PeerIRD != 0 || p.PeerORD != 0 || p.IRD != 5 || p.ORD != 6 {
			t.Errorf("revision %d: settled %+v", rev, p)
		}
	}
	c := Config{Revision: 1}
	if _, err := c.complete(&Frame{Revision: 2}, replyOf(t, Enhanced{})); err == nil {
		t.Error("an Initiator takes an enhanced Reply to an unenhanced Request")
	}
}

func TestRevisionOneRequestIsAccepted(t *testing.T) {
	for _, c := range []Config{{}, {IRD: 8, ORD: 8}, {MinORD: 8}, {PeerToPeer: true}, {Revision: 1}} {
		req := wire(t, &Frame{Revision: 1, CRC: true})
		if err := c.checkRequest(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if rep, p, err := c.respond(req, nil); err != nil || rep.Rejected || rep.Revision != 1 || p.Revision != 1 {
			t.Errorf("%+v: %v, %v", c, &rep, err)
		}
	}
}

func TestReservedStartupBitsAreSentZeroAndIgnored(t *testing.T) {
	for _, cfg := range []Config{
		{}, {Revision: 1}, {Revision: 2, ULPDepths: true}, {Markers: true}, {CRC: CRCOff}, {PeerToPeer: true},
	} {
		req, err := cfg.request()
		if err != nil {
			t.Fatal(err)
		}
		reserved := byte(0x0F)
		if req.Revision == 1 {
			reserved = 0x1F // S is part of Res there
		}
		if b, _ := req.AppendBinary(nil); b[16]&reserved != 0 || b[16]&0x20 != 0 {
			t.Errorf("%+v: the Request has flags %02x", cfg, b[16])
		}
		odd := req
		odd.Reserved = reserved
		odd.Rejected = true // R of a Request is not checked either
		in := wire(t, &odd)
		if in.Reserved != reserved || !in.Rejected {
			t.Fatalf("the bits were not sent: %+v", in)
		}
		if err := cfg.checkRequest(in); err != nil {
			t.Errorf("%+v: a Request with reserved bits: %v", cfg, err)
		}
		rep, p, err := cfg.respond(in, nil)
		_, clean, _ := cfg.respond(&req, nil)
		if err != nil || rep.Rejected || fmt.Sprintf("%+v", p) != fmt.Sprintf("%+v", clean) {
			t.Errorf("%+v: a Request with reserved bits: %v, %+v, %v; want %+v", cfg, &rep, p, err, clean)
		}
		if b, _ := rep.AppendBinary(nil); b[16]&reserved != 0 {
			t.Errorf("%+v: the Reply has flags %02x", cfg, b[16])
		}
		want, wantErr := cfg.complete(&req, wire(t, &rep))
		rep.Reserved = reserved
		got, gotErr := cfg.complete(&req, wire(t, &rep))
		if wantErr != nil || gotErr != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%+v: a Reply with reserved bits: %+v, %v; want %+v, %v", cfg, got, gotErr, want, wantErr)
		}
	}
}

func TestEnhancedDataLeadsThePrivateData(t *testing.T) {
	ini := Config{IRD: 2, ORD: 3, PrivateData: []byte("request")}
	res := Config{IRD: 3, ORD: 2, PrivateData: []byte("reply")}
	s := negotiate(t, ini, res)
	if want := append([]byte{0, 2, 0, 3}, "request"...); !bytes.Equal(s.req.PrivateData, want) {
		t.Errorf("Request: %x; want %x", s.req.PrivateData, want)
	}
	if want := append([]byte{0, 3, 0, 2}, "reply"...); !bytes.Equal(s.rep.PrivateData, want) {
		t.Errorf("Reply: %x; want %x", s.rep.PrivateData, want)
	}
	if string(s.ini.PrivateData) != "reply" || string(s.res.PrivateData) != "request" {
		t.Errorf("the ULPs got %q and %q", s.ini.PrivateData, s.res.PrivateData)
	}
	for n := range EnhancedLen {
		short := &Frame{Revision: 2, CRC: true, Enhanced: true, PrivateData: make([]byte, n)}
		wantCode(t, fmt.Sprintf("Request with %d octets of enhanced data", n), res.checkRequest(short), CodeStartup)
		short.Reply = true
		_, err := ini.complete(s.req, short)
		wantCode(t, fmt.Sprintf("Reply with %d octets of enhanced data", n), err, CodeStartup)
	}
	for _, tt := range []struct {
		cfg Config
		max int
	}{{Config{}, 508}, {Config{Revision: 1}, 512}, {Config{ULPDepths: true}, 512}, {Config{ULPDepths: true, PeerToPeer: true}, 508}} {
		tt.cfg.PrivateData = make([]byte, tt.max)
		if req, err := tt.cfg.request(); err != nil || len(req.PrivateData) != MaxPrivateData {
			t.Errorf("%d octets: %v, %v", tt.max, &req, err)
		}
		tt.cfg.PrivateData = make([]byte, tt.max+1)
		var e *ConfigError
		if _, err := tt.cfg.request(); !errors.As(err, &e) {
			t.Errorf("%d octets: %v; want a ConfigError", tt.max+1, err)
		}
	}
}

func TestPeersIRDAndORDReachTheULP(t *testing.T) {
	s := negotiate(t, Config{IRD: 7, ORD: 9}, Config{IRD: 4, ORD: 5})
	if s.res.PeerIRD != 7 || s.res.PeerORD != 9 {
		t.Errorf("the Responder's ULP gets IRD %d, ORD %d; want 7, 9", s.res.PeerIRD, s.res.PeerORD)
	}
	if s.ini.PeerIRD != 4 || s.ini.PeerORD != 5 {
		t.Errorf("the Initiator's ULP gets IRD %d, ORD %d; want 4, 5", s.ini.PeerIRD, s.ini.PeerORD)
	}
	s = negotiate(t, Config{IRD: 1, ORD: 9}, Config{IRD: 4, ORD: 5, MinORD: 2})
	var rejected *RejectedError
	if !errors.As(s.iniErr, &rejected) || !rejected.Enhanced || rejected.IRD != 4 || rejected.ORD != 2 {
		t.Errorf("rejected: %+v; want IRD 4, ORD 2", s.iniErr)
	}
	// The values are the peer's own, even where ours go by others.
	c := Config{IRD: 1, ORD: 1}
	p, err := c.complete(requestOf(t, Enhanced{IRD: 1, ORD: 1}), replyOf(t, Enhanced{IRD: DepthNotNegotiated, ORD: DepthNotNegotiated}))
	if err != nil || p.PeerIRD != DepthNotNegotiated || p.PeerORD != DepthNotNegotiated {
		t.Errorf("the Initiator's ULP gets %+v, %v", p, err)
	}
}

func TestConfigurationThatCannotWorkIsRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"revision":                   {Revision: 3},
		"CRC policy 7":               {CRC: 7},
		"IRD":                        {IRD: MaxDepth + 1},
		"ORD":                        {ORD: MaxDepth + 1},
		"MaxIRD":                     {MaxIRD: MaxDepth + 1},
		"MinORD":                     {MinORD: MaxDepth + 1},
		"RTR":                        {RTR: 8},
		"small MULPDU":               {MULPDU: MinMULPDU - 1},
		"large MULPDU":               {MULPDU: MaxMULPDU + 1},
		"EMSS":                       {EMSS: -1},
		"RequestTimeout":             {RequestTimeout: -1},
		"ReplyTimeout":               {ReplyTimeout: -1},
		"FirstFPDUTimeout":           {FirstFPDUTimeout: -1},
		"Settle":                     {Settle: -1},
		"peer-to-peer in revision 1": {PeerToPeer: true, Revision: 1},
	} {
		var e *ConfigError
		if err := cfg.Check(); !errors.As(err, &e) || !strings.Contains(e.Error(), name[strings.LastIndexByte(name, ' ')+1:]) {
			t.Errorf("%s: %v; want a ConfigError that names it", name, err)
		}
	}
	for _, cfg := range []Config{
		{},
		{IRD: MaxDepth, ORD: MaxDepth, MaxIRD: MaxDepth, MinORD: MaxDepth, RTR: RTRAll, MULPDU: MinMULPDU},
		{Revision: 2, PeerToPeer: true, MULPDU: MaxMULPDU, CRC: CRCRequire},
	} {
		if err := cfg.Check(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestCRCPolicyNames(t *testing.T) {
	for _, p := range []CRCPolicy{CRCPrefer, CRCRequire, CRCOff} {
		if got, err := ParseCRCPolicy(p.String()); err != nil || got != p {
			t.Errorf("%v came back as %v, %v", p, got, err)
		}
	}
	for p, want := range map[CRCPolicy]string{CRCPrefer: "prefer", CRCRequire: "require", CRCOff: "off"} {
		if p.String() != want {
			t.Errorf("%q; want %q", p, want)
		}
	}
	cfg := Config{RTR: RTRAll | 0x40}
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "unknown RTR kinds 0x40") {
		t.Errorf("unknown RTR: %v", err)
	}
	if p, err := ParseCRCPolicy("maybe"); err == nil || p != 0 {
		t.Errorf("maybe is %v", p)
	}
	if s := CRCPolicy(9).String(); s != "CRC policy 9" {
		t.Errorf("%q", s)
	}
}
