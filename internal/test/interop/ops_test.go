//go:build interop

package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/stag"
)

// The regions that peerops describes in private data, in this order.
const (
	regionRW = iota
	regionWriteOnly
	regionReadOnly
	regionLocal
	regionOtherPD
	numRegions

	regionLen = 16 // octets of a description
)

// A region is one that a peer describes.
type region struct {
	remote rnic.Remote
	length uint32
}

func parseRegions(t testing.TB, b []byte) [numRegions]region {
	t.Helper()
	if len(b) != numRegions*regionLen {
		t.Fatalf("peerops described its memory in %d octets", len(b))
	}
	var out [numRegions]region
	for i := range out {
		d := b[i*regionLen:]
		out[i] = region{
			rnic.Remote{TO: binary.BigEndian.Uint64(d), STag: stag.STag(binary.BigEndian.Uint32(d[8:]))},
			binary.BigEndian.Uint32(d[12:]),
		}
	}
	return out
}

// regionPattern is what peerops' regions hold, messagePattern what it sends and
// writes.
func regionPattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/256)
	}
	return b
}

func messagePattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*3 + i/256 + 1)
	}
	return b
}

// A ulp is a queue pair of ours and what a program has around it.
type ulp struct {
	t   testing.TB
	dev *rnic.Device
	pd  *rnic.PD
	cq  *rnic.CQ
	qp  *rnic.QP
}

func newULP(t testing.TB, dev *rnic.Device) *ulp {
	t.Helper()
	u := &ulp{t: t, dev: dev}
	var err error
	if u.pd, err = dev.AllocPD(); err != nil {
		t.Fatal(err)
	}
	if u.cq, err = dev.CreateCQ(rnic.CQAttr{Entries: 512}); err != nil {
		t.Fatal(err)
	}
	if u.qp, err = u.pd.CreateQP(rnic.QPAttr{SendCQ: u.cq, RecvCQ: u.cq}); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *ulp) register(mem []byte, access rnic.Access) *rnic.MR {
	u.t.Helper()
	mr, err := u.pd.Register(mem, access)
	if err != nil {
		u.t.Fatal(err)
	}
	return mr
}

func (u *ulp) post(wr rnic.SendWR) {
	u.t.Helper()
	if err := u.qp.PostSend(wr); err != nil {
		u.t.Fatal(err)
	}
}

// next returns the next completion.
func (u *ulp) next() rnic.WC {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	var wcs [1]rnic.WC
	if _, err := u.cq.Wait(ctx, wcs[:]); err != nil {
		u.t.Fatal(err)
	}
	return wcs[0]
}

// do posts a request that must succeed.
func (u *ulp) do(wr rnic.SendWR) {
	u.t.Helper()
	u.post(wr)
	wc := u.next()
	if err := wc.Err(); err != nil {
		u.t.Fatal(err)
	}
}

// event waits for an asynchronous event of one of the types.
func (u *ulp) event(types ...rnic.EventType) rnic.Event {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	e, err := u.dev.WaitEvent(ctx)
	if err != nil {
		u.t.Fatal(err)
	}
	if !slices.Contains(types, e.Type) {
		u.t.Fatalf("event %v; want one of %v", e, types)
	}
	return e
}

func (u *ulp) disconnect() {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	if err := u.qp.Disconnect(ctx); err != nil {
		u.t.Error(err)
	}
}

// settled is an MPA configuration for siw.
func settled(cfg mpa.Config) *mpa.Config {
	cfg.Settle = settle
	return &cfg
}

// atSIW connects to a server in the guest, which has the options given, and
// returns what it offers.
func atSIW(t testing.TB, options string, cfg mpa.Config) (*ulp, [numRegions]region, *process) {
	t.Helper()
	u := newULP(t, newDevice(t))
	p := theGuest.start(t, fmt.Sprintf("peerops server -a 10.0.2.15 -p %d %s", portOps, options))
	p.expect("listening")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := u.qp.Connect(ctx, theGuest.address(portOps), rnic.ConnParam{MPA: settled(cfg)}); err != nil {
		t.Fatalf("%v\n%s", err, p.end())
	}
	params, _ := u.qp.Params()
	return u, parseRegions(t, params.PrivateData), p
}

func TestOperationsOfOursAtSIW(t *testing.T) {
	for name, cfg := range map[string]mpa.Config{
		"revision 2, CRC":     {},
		"revision 2, no CRC":  {CRC: mpa.CRCOff},
		"revision 1":          {Revision: mpa.Revision1},
		"peer-to-peer, Write": {PeerToPeer: true, RTR: mpa.RTRWrite},
		"peer-to-peer, Read":  {PeerToPeer: true, RTR: mpa.RTRRead},
		"large FPDUs":         {MULPDU: mpa.MaxMULPDU},
	} {
		t.Run(name, func(t *testing.T) {
			withSIW(t, server, func(t testing.TB) {
				u, regions, p := atSIW(t, "", cfg)
				params, _ := u.qp.Params()
				if want := cfg.CRC != mpa.CRCOff; params.CRC != want {
					t.Errorf("CRCs are in use: %v", params.CRC)
				}
				rw := regions[regionRW].remote
				// The empty ones come first: siw has been seen to answer an empty Read
				// behind a long one with octets.
				for _, op := range []rnic.Opcode{rnic.OpRead, rnic.OpWrite, rnic.OpSend} {
					u.do(rnic.SendWR{Op: op})
				}
				for _, n := range []int{1, 1000, 100_000} {
					data, back := messagePattern(n), make([]byte, n)
					src, dst := u.register(data, 0), u.register(back, rnic.LocalWrite)
					u.do(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{dst.SGE(0, n)}, Remote: rw})
					if n == 1 && !bytes.Equal(back, regionPattern(n)) {
						t.Errorf("the region's first octet is %x", back)
					}
					u.do(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, n)}, Remote: rw})
					u.do(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{dst.SGE(0, n)}, Remote: rw})
					if !bytes.Equal(back, data) {
						t.Errorf("%d octets written and read back differ", n)
					}
				}
				msg := messagePattern(1500)
				mr := u.register(msg, 0)
				u.do(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, 700), mr.SGE(700, 800)}})
				u.do(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagSolicited, SGL: []rnic.SGE{mr.SGE(0, 64)}})
				u.disconnect()
				out := p.wait()
				for _, want := range []string{"op=RECV bytes=0 ", "bytes=1500 fnv", "bytes=64 fnv"} {
					if !strings.Contains(out, want) {
						t.Errorf("siw did not get %q:\n%s", want, out)
					}
				}
				if strings.Contains(out, "data=other") {
					t.Errorf("siw got other data than were sent:\n%s", out)
				}
				_ = u.dev.Close()
				checkRecording(t, recording(t), server)
			})
		})
	}
}

// serve accepts one connection of a client in the guest, with the options
// given, and returns our end, with regions as peerops' server has them.
func serve(t testing.TB, options string, recvs, size int) (*ulp, *regions, *process) {
	t.Helper()
	u := newULP(t, newDevice(t))
	r := u.offer()
	mr := u.register(make([]byte, recvs*size+1), rnic.LocalWrite)
	for i := range recvs {
		if err := u.qp.PostRecv(rnic.RecvWR{ID: uint64(1000 + i), SGL: []rnic.SGE{mr.SGE(i*size, size)}}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := u.dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := theGuest.start(t, fmt.Sprintf("peerops client -a %s -p %d %s", hostOfGuest, l.Addr().(*net.TCPAddr).Port, options))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := l.Accept(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.end())
	}
	if err := req.Accept(ctx, u.qp, rnic.ConnParam{PrivateData: r.describe()}); err != nil {
		t.Fatal(err)
	}
	return u, r, p
}

// regions are ours, as peerops' are.
type regions struct {
	mem [numRegions][]byte
	mr  [numRegions]*rnic.MR
}

func (u *ulp) offer() *regions {
	u.t.Helper()
	other, err := u.dev.AllocPD()
	if err != nil {
		u.t.Fatal(err)
	}
	r := &regions{}
	for i, d := range []struct {
		size   int
		access rnic.Access
		pd     *rnic.PD
	}{
		regionRW:        {4 << 20, rnic.LocalWrite | rnic.RemoteRead | rnic.RemoteWrite | rnic.RemoteInvalidate, u.pd},
		regionWriteOnly: {8 << 10, rnic.LocalWrite | rnic.RemoteWrite, u.pd},
		regionReadOnly:  {8 << 10, rnic.RemoteRead, u.pd},
		regionLocal:     {8 << 10, rnic.LocalWrite, u.pd},
		regionOtherPD:   {8 << 10, rnic.LocalWrite | rnic.RemoteRead | rnic.RemoteWrite, other},
	} {
		r.mem[i] = regionPattern(d.size)
		if r.mr[i], err = d.pd.Register(r.mem[i], d.access); err != nil {
			u.t.Fatal(err)
		}
	}
	return r
}

func (r *regions) describe() []byte {
	var b []byte
	for _, mr := range r.mr {
		b = binary.BigEndian.AppendUint64(b, mr.Base())
		b = binary.BigEndian.AppendUint32(b, uint32(mr.STag()))
		b = binary.BigEndian.AppendUint32(b, uint32(mr.Len()))
	}
	return b
}

func TestOperationsOfSIWAtOurs(t *testing.T) {
	for _, tt := range []struct {
		op     string
		size   int
		recvs  int
		expect func(t testing.TB, u *ulp, r *regions)
	}{
		{"write", 100_000, 0, func(t testing.TB, _ *ulp, r *regions) {
			if !bytes.Equal(r.mem[regionRW][:100_000], messagePattern(100_000)) {
				t.Error("the data written differ")
			}
		}},
		{"write-gather", 9000, 0, func(t testing.TB, _ *ulp, r *regions) {
			if bytes.Equal(r.mem[regionRW][:9000], regionPattern(9000)) {
				t.Error("nothing was written")
			}
		}},
		{"read", 100_000, 0, nil}, // the client compares
		{"send", 5000, 1, wantRecv(5000, false)},
		{"send-se", 64, 1, wantRecv(64, true)},
		{"send-inv", 64, 1, func(t testing.TB, u *ulp, r *regions) {
			wc := u.next()
			if err := wc.Err(); err != nil || wc.Invalidated != r.mr[regionRW].STag() || r.mr[regionRW].Valid() {
				t.Errorf("%+v, %v", wc, err)
			}
		}},
		{"write-send", 3000, 1, func(t testing.TB, u *ulp, r *regions) {
			wc := u.next()
			// A Send says that the Write before it is there (RFC 5040 §5.5 rule 10).
			if err := wc.Err(); err != nil || !bytes.Equal(r.mem[regionRW][:3000], messagePattern(3000)) {
				t.Errorf("%+v, %v", wc, err)
			}
		}},
	} {
		t.Run(tt.op, func(t *testing.T) {
			withSIW(t, client, func(t testing.TB) {
				u, r, p := serve(t, fmt.Sprintf("%s %d", tt.op, tt.size), tt.recvs, 8192)
				if tt.expect != nil && tt.recvs > 0 {
					tt.expect(t, u, r)
				}
				out := p.wait() // with status 4 it would say that data was wrong
				if strings.Contains(out, "result=wrong") {
					t.Errorf("siw read other data:\n%s", out)
				}
				u.event(rnic.EventCloseComplete)
				if tt.expect != nil && tt.recvs == 0 {
					tt.expect(t, u, r)
				}
				_ = u.dev.Close()
				checkRecording(t, recording(t), client)
			})
		})
	}
}

func wantRecv(n int, solicited bool) func(testing.TB, *ulp, *regions) {
	return func(t testing.TB, u *ulp, _ *regions) {
		wc := u.next()
		if err := wc.Err(); err != nil || int(wc.ByteLen) != n || wc.Solicited != solicited {
			t.Errorf("%+v, %v", wc, err)
		}
	}
}
