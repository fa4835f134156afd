package rdpflow

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/rdpllp"
)

// A recordedPair is two RNICs over RDP, each of which records what it sends and receives.
type recordedPair struct {
	files [2]bytes.Buffer
}

// record runs f with two RNICs that are connected over RDP on a network in memory.
func record(t *testing.T, seed uint64, faults rdp.Faults, cfg rdpllp.Config, f func(t *testing.T, p *rnictest.Pair)) *recordedPair {
	t.Helper()
	n := rdp.NewNetwork(seed, faults)
	pair := &recordedPair{}
	cfg.Carrier = func(_ context.Context, addr netip.AddrPort) (rdp.Carrier, error) {
		if addr.Addr().IsUnspecified() {
			addr = netip.MustParseAddrPort("192.0.2.1:0")
		}
		return n.Carrier(addr)
	}
	synctest.Test(t, func(t *testing.T) {
		device := func(side string, c *rnic.Config) {
			w, err := capture.NewWriter(&pair.files[side[0]-'A'])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			})
			cfg := cfg
			cfg.Recorder = w
			c.LowerLayer = rdpllp.New(cfg)
		}
		param := func(side string, c *rnic.ConnParam) {
			c.PrivateData, c.IRD, c.ORD = []byte("from "+side), 4, 8
		}
		f(t, rnictest.Connect(t, rnictest.Options{Device: device, Conn: param}))
	})
	return pair
}

const everyRight = rnic.LocalWrite | rnic.RemoteRead | rnic.RemoteWrite | rnic.RemoteAtomic

// exchangeAll has each kind of message but Terminate.
func exchangeAll(t *testing.T, p *rnictest.Pair) {
	t.Helper()
	const size = 50_000
	from, to := p.A.Register(t, make([]byte, size), everyRight), p.B.Register(t, make([]byte, size), everyRight)
	for i := range 4 {
		p.B.Recv(t, rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{to.SGE(0, size)}})
	}
	p.A.Recv(t, rnic.RecvWR{SGL: []rnic.SGE{from.SGE(0, size)}})
	var reads []rnic.SendWR
	for i := range 12 {
		reads = append(reads, rnic.SendWR{ID: uint64(100 + i), Op: rnic.OpRead, SGL: []rnic.SGE{from.SGE(i*1000, 1000)}, Remote: to.Remote(i * 2000)})
	}
	p.A.Send(t, append([]rnic.SendWR{
		{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{from.SGE(0, size)}, Remote: to.Remote(0)},
		{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{from.SGE(0, 20_000)}},
		{ID: 3, Op: rnic.OpWriteImmediate, SGL: []rnic.SGE{from.SGE(0, 3000)}, Remote: to.Remote(0)},
		{ID: 4, Op: rnic.OpRead, SGL: []rnic.SGE{from.SGE(0, size)}, Remote: to.Remote(0)},
		{ID: 5, Op: rnic.OpSend, Flags: rnic.FlagSolicited},
		{ID: 6, Op: rnic.OpFetchAdd, SGL: []rnic.SGE{from.SGE(0, 8)}, Remote: to.Remote(8), Atomic: rnic.Atomic{Add: 1}},
	}, reads...)...)
	p.B.Send(t,
		rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{to.SGE(0, 10_000)}, Remote: from.Remote(0)},
		rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{to.SGE(0, size)}},
	)
	for _, cq := range []struct {
		q *rnic.CQ
		n int
	}{{p.A.SendCQ, 18}, {p.B.SendCQ, 2}, {p.B.RecvCQ, 3}, {p.A.RecvCQ, 1}} {
		for range cq.n {
			if err := func() error { wc := rnictest.Next(t, cq.q); return wc.Err() }(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.A.QP.Disconnect(t.Context()); err != nil {
		t.Error(err)
	}
}

// exchanged are the messages of exchangeAll.
var exchanged = dissect.Counts{
	rdmap.OpWrite: 2, rdmap.OpReadRequest: 14, rdmap.OpReadResponse: 14, rdmap.OpSend: 2, rdmap.OpSendSE: 1,
	rdmap.OpImmediate: 1, rdmap.OpAtomicRequest: 1, rdmap.OpAtomicResponse: 1,
}

// each analyses both recordings, as complete and as not.
func (r *recordedPair) each(t *testing.T, f func(name string, f found), handlers ...dissect.Handler) {
	t.Helper()
	for side := range r.files {
		for _, complete := range []bool{false, true} {
			f(fmt.Sprintf("side %c, complete %v", 'A'+side, complete), analyzeWith(t, r.files[side].Bytes(), &Analyzer{Complete: complete}, handlers...))
		}
	}
}

// What two RNICs do to each other over RDP breaks no rule, whichever side looks, also where segments are lost, late and
// doubled. All of it is decoded, however the segments came.
func TestOurRNICsBreakNoRuleOverRDP(t *testing.T) {
	for seed := range uint64(8) {
		faults := rdp.Faults{Delay: time.Millisecond, Jitter: 3 * time.Millisecond}
		if seed >= 4 {
			faults.Loss, faults.Duplicate, faults.Reorder = 0.1, 0.1, 0.1
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := record(t, seed, faults, rdpllp.Config{Version: uint8(1 + seed%2), MaxSegment: 1472}, exchangeAll)
			r.each(t, func(name string, f found) {
				f.want(t)
				if len(f.notes) > 0 || f.Verdict() != dissect.VerdictOK || len(f.Connections) != 1 {
					t.Fatalf("%s: %s, notes %q", name, f.Verdict(), f.notes)
				}
				c := f.Connections[0]
				if c.Messages != exchanged {
					t.Errorf("%s: %v, want %v", name, c.Messages, exchanged)
				}
				if c.Transport != dissect.RDP || c.MPA.IRD != 4 || c.MPA.ORD != 4 || c.MPA.Private != [2]int{6, 6} || c.Payload != 195_008 {
					t.Errorf("%s: %v, start-up %+v, payload %d", name, c.Transport, c.MPA, c.Payload)
				}
			})
		})
	}
}

// A Write to memory that is not there is answered by a Terminate, which shows the header of the segment.
func TestTerminateOverRDP(t *testing.T) {
	r := record(t, 1, rdp.Faults{Delay: time.Millisecond}, rdpllp.Config{}, func(t *testing.T, p *rnictest.Pair) {
		from := p.A.Register(t, make([]byte, 100), everyRight)
		p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{from.SGE(0, 100)}, Remote: rnic.Remote{STag: 0x1234}})
		p.A.Recv(t, rnic.RecvWR{})
		p.B.Recv(t, rnic.RecvWR{})
		rnictest.Next(t, p.B.RecvCQ)
		rnictest.Next(t, p.A.RecvCQ)
		time.Sleep(time.Minute) // of the fake clock: until the stream is over
	})
	terminates := 0
	r.each(t, func(name string, f found) {
		f.want(t)
		if f.Connections[0].Messages[rdmap.OpTerminate] != 1 {
			t.Errorf("%s: %v", name, f.Connections[0].Messages)
		}
	}, func(e *dissect.Event) error {
		if e.Kind == dissect.KindMessage && e.Message.Terminate != nil {
			terminates++
		}
		if e.Kind == dissect.KindClose && e.Reset {
			t.Errorf("packet %d: the %v aborts", e.At.Packet, e.From)
		}
		return nil
	})
	if terminates != 4 {
		t.Errorf("%d Terminates were decoded", terminates)
	}
}

// A connection that is aborted shows that, and breaks no rule.
func TestAbortOverRDP(t *testing.T) {
	r := record(t, 1, rdp.Faults{Delay: time.Millisecond}, rdpllp.Config{}, func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, rnic.RecvWR{})
		p.A.QP.Abort()
		rnictest.Next(t, p.B.RecvCQ)
	})
	resets := 0
	r.each(t, func(name string, f found) {
		f.want(t)
		if len(f.ends) != 1 || f.ends[0].How != "closed" {
			t.Errorf("%s: ends %v", name, f.ends)
		}
	}, func(e *dissect.Event) error {
		if e.Kind == dissect.KindClose && e.Reset && e.From == client {
			resets++
		}
		return nil
	})
	if resets != 4 {
		t.Errorf("%d resets were shown", resets)
	}
}
