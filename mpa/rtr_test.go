package mpa

import (
	"testing"
)

// rtrSets are all sets of ready-to-receive indications but the empty one.
var rtrSets = []RTR{
	RTRSend, RTRWrite, RTRRead,
	RTRSend | RTRWrite, RTRSend | RTRRead, RTRWrite | RTRRead, RTRAll,
}

func TestInitiatorOffersTheRTRKindsItSupports(t *testing.T) {
	for _, set := range append(rtrSets, 0) {
		c := Config{PeerToPeer: true, RTR: set, IRD: 1, ORD: 1}
		req, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		want := set
		if set == 0 {
			want = RTRAll
		}
		if e := enhanced(t, wire(t, &req)); !e.PeerToPeer || e.RTR != want {
			t.Errorf("RTR %v: offered %v", set, e)
		}
	}
}

func TestResponderChoosesFromTheRTRKindsOffered(t *testing.T) {
	for _, offered := range append(rtrSets, 0) {
		for _, ours := range append(rtrSets, 0) {
			c := Config{RTR: ours, IRD: 1, ORD: 1}
			rep, p, err := c.respond(requestOf(t, Enhanced{PeerToPeer: true, RTR: offered}), nil)
			if err != nil {
				t.Fatal(err)
			}
			support := ours
			if ours == 0 {
				support = RTRAll
			}
			want := offered & support
			if want == 0 {
				want = support // the Initiator will say that nothing matches
			}
			if e := enhanced(t, &rep); !e.PeerToPeer || e.RTR != want || e.RTR == 0 {
				t.Errorf("offered %v, supports %v: replied %v; want %v", offered, support, e, want)
			}
			if !p.PeerToPeer || p.RTR != want {
				t.Errorf("offered %v, supports %v: settled %v", offered, support, p.RTR)
			}
		}
	}
}

// "If the initiator ORD is insufficient to support the selected connection model,
// the responder IRD MAY be increased": RFC 6581 §9.1.
func TestReadRTRThatAResponderTakesHasAPlaceInItsQueue(t *testing.T) {
	for _, offered := range rtrSets {
		for _, ours := range rtrSets {
			for _, ird := range []uint16{0, 1, 4} {
				for _, ord := range []uint16{0, 1, 4, DepthNotNegotiated} {
					c := Config{RTR: ours, IRD: ird}
					rep, p, err := c.respond(requestOf(t, Enhanced{PeerToPeer: true, RTR: offered, IRD: 4, ORD: ord}), nil)
					if err != nil {
						t.Fatal(err)
					}
					e := enhanced(t, &rep)
					want := Enhanced{PeerToPeer: true, RTR: offered & ours, IRD: min(ird, ord)}
					if want.RTR == 0 {
						want.RTR = ours // the Initiator will say that nothing matches
					}
					if ird == 0 && want.RTR != RTRRead {
						want.RTR &^= RTRRead
					}
					if want.RTR&RTRRead != 0 {
						want.IRD = max(want.IRD, 1)
					}
					settled := want.IRD
					if ord == DepthNotNegotiated {
						want.IRD = DepthNotNegotiated
					}
					if e != want || p.RTR != want.RTR || p.IRD != settled {
						t.Errorf("offered %v with ORD %d, supports %v with IRD %d: replied %v, settled %v with IRD %d; want %v and IRD %d",
							offered, ord, ours, ird, e, p.RTR, p.IRD, want, settled)
					}
				}
			}
		}
	}
}

func TestInitiatorChoosesOneRTRKindThatBothSupport(t *testing.T) {
	for _, ours := range rtrSets {
		for _, theirs := range append(rtrSets, 0) {
			for _, ird := range []uint16{0, 1, DepthNotNegotiated} {
				c := Config{PeerToPeer: true, RTR: ours, IRD: 1, ORD: 1}
				req, err := c.request()
				if err != nil {
					t.Fatal(err)
				}
				p, err := c.complete(&req, replyOf(t, Enhanced{PeerToPeer: true, RTR: theirs, IRD: ird}))
				common := ours & theirs
				if ird == 0 {
					common &^= RTRRead // it has no place in the Responder's queue
				}
				if common == 0 {
					if e := wantCode(t, "nothing in common", err, CodeNoMatchingRTR); e.TermWord() != 0x2007 {
						t.Errorf("Terminate word %#x; want 0x2007", e.TermWord())
					}
					if p.Role != Initiator || !p.CRC || p.Revision != 2 {
						t.Errorf("no Terminate can be sent under %+v", p)
					}
					continue
				}
				if one := p.RTR == RTRSend || p.RTR == RTRWrite || p.RTR == RTRRead; err != nil || !one || p.RTR&common == 0 || !p.PeerToPeer {
					t.Errorf("ours %v, theirs %v, IRD %d: chose %v, %v", ours, theirs, ird, p.RTR, err)
				}
			}
		}
	}
}

func TestClientServerModelUsesNoRTR(t *testing.T) {
	s := negotiate(t, Config{RTR: RTRAll, IRD: 4, ORD: 4}, Config{RTR: RTRAll, PeerToPeer: true, IRD: 4, ORD: 4})
	for _, f := range []*Frame{s.req, s.rep} {
		if a, c := f.PrivateData[0], f.PrivateData[2]; a&0xC0 != 0 || c&0xC0 != 0 {
			t.Errorf("%v: enhanced data %x; want A, B, C and D zero", f, f.PrivateData)
		}
	}
	if s.iniErr != nil || s.resErr != nil || s.ini.PeerToPeer || s.res.PeerToPeer || s.ini.RTR != 0 || s.res.RTR != 0 {
		t.Errorf("settled %+v, %v and %+v, %v", s.ini, s.iniErr, s.res, s.resErr)
	}
}

func TestReplyWithTheOtherModelIsRefused(t *testing.T) {
	for _, p2p := range []bool{false, true} {
		c := Config{PeerToPeer: p2p}
		req, err := c.request()
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.complete(&req, replyOf(t, Enhanced{PeerToPeer: !p2p, RTR: RTRAll, IRD: 1}))
		wantCode(t, "the Reply has another A", err, CodeStartup)
	}
}

func TestRTRNames(t *testing.T) {
	for r, want := range map[RTR]string{0: "none", RTRSend: "Send", RTRAll: "Send+Write+Read"} {
		if r.String() != want {
			t.Errorf("%d is %q; want %q", uint8(r), r, want)
		}
	}
}
