package mpa

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"urnic/internal/test/simnet"
)

// What the siw driver of Linux 6.1 answers to Requests, as recorded from it.
var siwReplies = []struct {
	name       string
	cfg        Config // makes the Request, unless that is one that we never make
	cannotMake bool
	req, rep   []byte
	want       Params // what matters of it
	code       Code
	rejected   *RejectedError
}{
	{
		name: "revision 1", cfg: Config{Revision: 1, CRC: CRCOff},
		req: frame(reqKey, 0x00, 1), rep: frame(repKey, 0x00, 1),
		want: Params{Revision: 1},
	}, {
		name: "revision 1, CRC", cfg: Config{Revision: 1},
		req: frame(reqKey, 0x40, 1), rep: frame(repKey, 0x40, 1),
		want: Params{Revision: 1, CRC: true},
	}, {
		name: "revision 1, markers", cfg: Config{Revision: 1, CRC: CRCOff, Markers: true},
		req: frame(reqKey, 0x80, 1), rep: frame(repKey, 0x20, 1),
		rejected: &RejectedError{},
	}, {
		name: "revision 1, markers and CRC", cfg: Config{Revision: 1, Markers: true},
		req: frame(reqKey, 0xC0, 1), rep: frame(repKey, 0x60, 1),
		rejected: &RejectedError{},
	}, {
		name: "revision 1 with private data", cfg: Config{Revision: 1, PrivateData: []byte("hello, siw!!")},
		req: frame(reqKey, 0x40, 1, []byte("hello, siw!!")...), rep: frame(repKey, 0x40, 1),
		want: Params{Revision: 1, CRC: true},
	}, {
		name: "revision 1, all reserved bits set", cfg: Config{Revision: 1, CRC: CRCOff}, cannotMake: true,
		req: frame(reqKey, 0x0F, 1), rep: frame(repKey, 0x0F, 1),
		want: Params{Revision: 1},
	}, {
		name: "revision 1, R set", cfg: Config{Revision: 1, CRC: CRCOff}, cannotMake: true,
		req: frame(reqKey, 0x20, 1), rep: frame(repKey, 0x20, 1), // R comes back
		rejected: &RejectedError{},
	}, {
		name: "revision 2, nothing enhanced", cfg: Config{Revision: 2, ULPDepths: true, CRC: CRCOff},
		req: frame(reqKey, 0x00, 2), rep: frame(repKey, 0x00, 2),
		want: Params{Revision: 2},
	}, {
		name: "IRD 4, ORD 4", cfg: Config{IRD: 4, ORD: 4, CRC: CRCOff},
		req: frame(reqKey, 0x10, 2, 0, 4, 0, 4), rep: frame(repKey, 0x10, 2, 0, 4, 0, 4),
		want: Params{Revision: 2, Enhanced: true, IRD: 4, ORD: 4, PeerIRD: 4, PeerORD: 4},
	}, {
		name: "IRD 0, ORD 0", cfg: Config{CRC: CRCOff},
		req: frame(reqKey, 0x10, 2, 0, 0, 0, 0), rep: frame(repKey, 0x10, 2, 0, 0, 0, 0),
		want: Params{Revision: 2, Enhanced: true},
	}, {
		name: "IRD 4, ORD 2, CRC", cfg: Config{IRD: 4, ORD: 2},
		req: frame(reqKey, 0x50, 2, 0, 4, 0, 2), rep: frame(repKey, 0x50, 2, 0, 2, 0, 4),
		want: Params{Revision: 2, Enhanced: true, CRC: true, IRD: 4, ORD: 2, PeerIRD: 2, PeerORD: 4},
	}, {
		name: "IRD and ORD not negotiated", cfg: Config{ULPDepths: true, IRD: 7, ORD: 8, CRC: CRCOff}, cannotMake: true,
		req: frame(reqKey, 0x10, 2, 0x3F, 0xFF, 0x3F, 0xFF), rep: frame(repKey, 0x10, 2, 0, 0x80, 0, 0x80), // it names its limits
		want: Params{Revision: 2, Enhanced: true, IRD: 7, ORD: 8, PeerIRD: 128, PeerORD: 128},
	}, {
		name: "RTR Write", cfg: Config{PeerToPeer: true, RTR: RTRWrite, IRD: 4, ORD: 4, CRC: CRCOff},
		req: frame(reqKey, 0x10, 2, 0x80, 4, 0x80, 4), rep: frame(repKey, 0x10, 2, 0x80, 4, 0x80, 4),
		want: Params{Revision: 2, Enhanced: true, IRD: 4, ORD: 4, PeerIRD: 4, PeerORD: 4, PeerToPeer: true, RTR: RTRWrite},
	}, {
		name: "RTR Read", cfg: Config{PeerToPeer: true, RTR: RTRRead, IRD: 4, ORD: 4, CRC: CRCOff},
		req: frame(reqKey, 0x10, 2, 0x80, 4, 0x40, 4), rep: frame(repKey, 0x10, 2, 0x80, 4, 0x40, 4),
		want: Params{Revision: 2, Enhanced: true, IRD: 4, ORD: 4, PeerIRD: 4, PeerORD: 4, PeerToPeer: true, RTR: RTRRead},
	}, {
		name: "RTR Send", cfg: Config{PeerToPeer: true, RTR: RTRSend, IRD: 4, ORD: 4, CRC: CRCOff},
		req: frame(reqKey, 0x10, 2, 0xC0, 4, 0, 4), rep: frame(repKey, 0x10, 2, 0x80, 4, 0x80, 4), // it takes a Write only
		code: CodeNoMatchingRTR,
	}, {
		name: "no RTR offered", cfg: Config{PeerToPeer: true, RTR: RTRWrite, IRD: 4, ORD: 4, CRC: CRCOff}, cannotMake: true,
		req: frame(reqKey, 0x10, 2, 0x80, 4, 0, 4), rep: frame(repKey, 0x10, 2, 0x80, 4, 0x80, 4),
		want: Params{Revision: 2, Enhanced: true, IRD: 4, ORD: 4, PeerIRD: 4, PeerORD: 4, PeerToPeer: true, RTR: RTRWrite},
	}, {
		name: "S without enhanced data", cfg: Config{CRC: CRCOff}, cannotMake: true,
		req: frame(reqKey, 0x10, 2), rep: frame(repKey, 0x30, 2),
		rejected: &RejectedError{},
	}, {
		name: "S with half of the enhanced data", cfg: Config{CRC: CRCOff}, cannotMake: true,
		req: frame(reqKey, 0x10, 2, 0, 4), rep: frame(repKey, 0x30, 2),
		rejected: &RejectedError{},
	},
}

func TestRepliesOfSiw(t *testing.T) {
	for _, tt := range siwReplies {
		t.Run(tt.name, func(t *testing.T) {
			if made, err := tt.cfg.request(); err != nil {
				t.Fatal(err)
			} else if b, _ := made.AppendBinary(nil); bytes.Equal(b, tt.req) == tt.cannotMake {
				t.Errorf("our Request is %x; the recorded one %x", b, tt.req)
			}
			req, _, err := ParseFrame(tt.req)
			if err != nil {
				t.Fatal(err)
			}
			rep, _, err := ParseFrame(tt.rep)
			if err != nil {
				t.Fatal(err)
			}
			p, err := tt.cfg.complete(&req, &rep)
			switch {
			case tt.rejected != nil:
				var got *RejectedError
				if !errors.As(err, &got) || got.Enhanced != tt.rejected.Enhanced || len(got.PrivateData) != 0 {
					t.Errorf("%v; want a rejection", err)
				}
			case tt.code != 0:
				wantCode(t, "the Reply", err, tt.code)
			default:
				p.PrivateData, tt.want.Role = nil, Initiator
				if err != nil || !reflect.DeepEqual(p, tt.want) {
					t.Errorf("settled %+v, %v\nwant    %+v", p, err, tt.want)
				}
			}
		})
	}
}

// To what it can't read, siw answers with a FIN alone.
func TestSiwThatClosesWithoutAReply(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		done := initiates(t.Context(), conn, Config{Revision: 1, PrivateData: make([]byte, 512)}) // more than it takes
		p.hears(532)
		_ = p.conn.Close()
		wantCode(t, "FIN without a Reply", (<-done).err, CodeConnectionLost)
	})
}

// Requests of programs over siw, and our Replies.
func TestRequestsOfSiw(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cfg      Config
		req, rep []byte
	}{
		{"rping", Config{IRD: 16, ORD: 16, CRC: CRCOff}, frame(reqKey, 0x10, 2, 0, 1, 0, 1), frame(repKey, 0x10, 2, 0, 1, 0, 1)},
		{"rdma_client", Config{IRD: 16, ORD: 16, CRC: CRCOff}, frame(reqKey, 0x10, 2, 0, 128, 0, 128), frame(repKey, 0x10, 2, 0, 16, 0, 16)},
		{"perftest without reads", Config{IRD: 16, ORD: 16}, frame(reqKey, 0x10, 2, 0, 0, 0, 0), frame(repKey, 0x50, 2, 0, 0, 0, 0)},
		{
			"NFS",
			Config{IRD: 128, ORD: 128},
			frame(reqKey, 0x10, 2, 0, 128, 0, 0, 0xF6, 0xAB, 0x0E, 0x18, 1, 0, 0, 0),
			frame(repKey, 0x50, 2, 0, 0, 0, 128),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				_, reply := responded(t, conn, p, tt.cfg, tt.req)
				if !bytes.Equal(reply, tt.rep) {
					t.Errorf("replied %x; want %x", reply, tt.rep)
				}
			})
		})
	}
}
