package rnic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"urnic/internal/door"
	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestDeviceTellsWhatItCanDo(t *testing.T) {
	l := newLab(t, rnic.Config{Name: "test7", Limits: pd.Limits{pd.QueuePairs: 77}, DomainLimits: pd.Limits{pd.Regions: 5}})
	a := l.dev.Attr()
	if a.Name != "test7" || l.dev.Name() != "test7" || a.Limits[pd.QueuePairs] != 77 || a.DomainLimits[pd.QueuePairs] != 77 ||
		a.DomainLimits[pd.Regions] != 5 || a.Limits[pd.Windows] != pd.DefaultLimits()[pd.Windows] {
		t.Errorf("%+v", a)
	}
	if !a.Atomics || !a.Immediate || !a.Windows || !a.FastRegister || !a.ZeroBased || !a.SRQ || a.MaxMessage != rnic.MaxMessage ||
		a.MaxSGE != rnic.MaxSGE || a.MaxReadSGE != 1 || a.MaxIRD != rnic.MaxDepth || a.MaxORD != rnic.MaxDepth || a.PrivateData != 508 {
		t.Errorf("%+v", a)
	}
	b, err := json.Marshal(a)
	if err != nil || !strings.Contains(string(b), `"max_sge":32`) {
		t.Errorf("%s, %v", b, err)
	}
	if name := newLab(t, rnic.Config{}).dev.Name(); name != "urnic0" {
		t.Errorf("a device without a name is called %q", name)
	}
}

// Devices of one process share nothing: objects of one are foreign to the other,
// and numbers and quotas are each device's own.
func TestDevicesShareNothing(t *testing.T) {
	limits := pd.Limits{pd.Domains: 1, pd.QueuePairs: 1}
	a, b := newLab(t, rnic.Config{Limits: limits}), newLab(t, rnic.Config{Limits: limits})
	pa, pb := a.domain(), b.domain()
	qa, qb := a.qp(pa, rnic.QPAttr{}), b.qp(pb, rnic.QPAttr{})
	if pa.Num() != pb.Num() || qa.Num() != qb.Num() {
		t.Errorf("numbers: domains %d and %d, queue pairs %d and %d", pa.Num(), pb.Num(), qa.Num(), qb.Num())
	}
	if pa.Device() != a.dev || qa.PD() != pa {
		t.Error("objects don't know whose they are")
	}
	mem := make([]byte, 8)
	mr := b.region(pb, mem, everyRight)
	wantRefused(t, "foreign region", qa.PostRecv(rnic.RecvWR{SGL: []rnic.SGE{mr.SGE(0, 8)}}), nil, "invalid STag")
	_, err := pa.RegisterMemory(rnic.Memory{Slice: mem}, 0, qb)
	wantRefused(t, "foreign stream", err, nil, "another protection domain")
	_, err = pa.CreateQP(rnic.QPAttr{SendCQ: b.cq(rnic.CQAttr{}), RecvCQ: a.cq(rnic.CQAttr{})})
	wantRefused(t, "foreign CQ", err, rnic.ErrForeign)
	if err := b.dev.Close(); err != nil {
		t.Error(err)
	}
	if err := qa.PostRecv(receives(1, 1)...); err != nil {
		t.Errorf("a device ends with another one: %v", err)
	}
}

// A domain's number tells it from the others of its device, also in errors.
func TestDomainsAreToldApartByTheirNumbers(t *testing.T) {
	l := newLab(t, rnic.Config{})
	a, b := l.domain(), l.domain()
	if a.Num() == b.Num() {
		t.Errorf("both have the number %d", a.Num())
	}
}

// busy fills a device with everything there is, in use.
func busy(t *testing.T, p *rnictest.Pair, address string) (objects map[string]io.Closer) {
	t.Helper()
	for _, s := range []*rnictest.Side{p.A, p.B} {
		l := labOf(t, s)
		mem := make([]byte, 100_000)
		mr, w := s.Register(t, mem, everyRight), l.window(s.PD, rnic.Type2)
		srq, ch := l.srq(s.PD, rnic.SRQAttr{}), l.channel()
		fill(t, srq, receives(1, 5)...)
		if _, err := ch.FD(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Device.EventFD(); err != nil {
			t.Fatal(err)
		}
		cq := l.cq(rnic.CQAttr{Channel: ch, PD: s.PD})
		shared := l.qp(s.PD, rnic.QPAttr{SRQ: srq, SendCQ: cq})
		idle := l.qp(s.PD, rnic.QPAttr{SendCQ: cq})
		if err := idle.PostRecv(receives(1, 5)...); err != nil {
			t.Fatal(err)
		}
		postSend(t, idle, empties(1, 5, 0)...)
		listener, err := s.Device.Listen(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		s.Recv(t, rnic.RecvWR{SGL: []rnic.SGE{mr.SGE(0, 10)}})
		objects = map[string]io.Closer{
			"region": mr, "window": w, "SRQ": srq, "channel": ch, "CQ": cq, "queue pair with SRQ": shared, "idle queue pair": idle,
			"listener": listener, "domain": s.PD, "queue pair": s.QP,
		}
	}
	a, b := labOf(t, p.A), labOf(t, p.B)
	src := p.A.Register(t, make([]byte, 1<<20), 0)
	for range 3 { // streams that are busy
		dst := p.B.Register(t, make([]byte, 1<<20), everyRight)
		qa := a.qp(p.A.PD, rnic.QPAttr{})
		p.Link(t, qa, b.qp(p.B.PD, rnic.QPAttr{}))
		for range 10 {
			postSend(t, qa, rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 1<<20)}, Remote: dst.Remote(0)})
		}
	}
	w := a.window(p.A.PD, rnic.Type1)
	mr := p.A.Register(t, make([]byte, 8), everyRight)
	p.A.Send(t, rnic.SendWR{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w, MR: mr, Addr: mr.Base(), Length: 8, Access: rnic.RemoteRead}})
	return objects
}

// Close ends all there is, whatever it is doing, and leaves neither goroutines
// nor anything held.
func TestDeviceClosesWithEverythingOpen(t *testing.T) {
	check := func(t *testing.T, p *rnictest.Pair, address string) {
		objects := busy(t, p, address)
		waits := map[string]func() error{
			"event": func() error { _, err := p.B.Device.WaitEvent(context.Background()); return err },
			"CQ":    func() error { _, err := p.B.SendCQ.Wait(context.Background(), make([]rnic.WC, 1)); return err },
			"channel": func() error {
				_, err := objects["channel"].(*rnic.CompletionChannel).Wait(context.Background())
				return err
			},
			"accept": func() error { _, err := objects["listener"].(*rnic.Listener).Accept(context.Background()); return err },
		}
		var wg sync.WaitGroup
		for name, wait := range waits {
			wg.Go(func() {
				for {
					if err := wait(); err != nil { // after what there is to fetch
						wantRefused(t, "waiting for "+name, err, rnic.ErrClosed)
						return
					}
				}
			})
		}
		var closing sync.WaitGroup
		for range 3 { // all of them return when it is done
			closing.Go(func() {
				if err := p.B.Device.Close(); err != nil {
					t.Error(err)
				}
				wantHoldings(t, "a closed device", p.B.Device, [pd.NumResources]uint64{})
			})
		}
		closing.Wait()
		wg.Wait()
		for name, o := range objects { // may be closed all the same
			if err := o.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := p.A.Device.Close(); err != nil {
			t.Error(err)
		}
		wantHoldings(t, "the other device", p.A.Device, [pd.NumResources]uint64{})
	}
	t.Run("memory", func(t *testing.T) {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) { check(t, p, "192.0.2.1:0") })
	})
	t.Run("TCP", func(t *testing.T) {
		leakcheck.Check(t)
		check(t, overTCP(t, "127.0.0.1:0"), "127.0.0.1:0")
	})
}

// Every verb of something that is closed is an error that says so.
func TestVerbsOfAClosedDeviceAreErrors(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	mem := make([]byte, 8)
	mr, fast, w, srq, ch := l.region(p, mem, everyRight), l.allocated(p), l.window(p, rnic.Type1), l.srq(p, rnic.SRQAttr{}), l.channel()
	cq := l.cq(rnic.CQAttr{Channel: ch})
	q := l.qpOn(p, cq)
	reregister := func() error { _, err := door.Reregister(mr, p, rnic.Memory{Slice: mem}, 0); return err }
	listener, err := l.dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.dev.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	second := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"allocate PD":               second(l.dev.AllocPD()),
		"create CQ":                 second(l.dev.CreateCQ(rnic.CQAttr{})),
		"create reserved CQ":        second(l.dev.CreateCQ(rnic.CQAttr{PD: p})),
		"create completion channel": second(l.dev.CreateCompletionChannel()),
		"listen":                    second(l.dev.Listen(ctx, "127.0.0.1:0")),
		"wait for event":            second(l.dev.WaitEvent(ctx)),
		"event descriptor":          second(l.dev.EventFD()),
		"create QP":                 second(p.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})),
		"create SRQ":                second(p.CreateSRQ(rnic.SRQAttr{})),
		"register":                  second(p.Register(mem, 0)),
		"register memory":           second(p.RegisterMemory(rnic.Memory{Slice: mem}, 0, q)),
		"reregister":                reregister(),
		"allocate MR":               second(p.AllocMR(8)),
		"allocate MW":               second(p.AllocMW(rnic.Type1)),
		"post send":                 q.PostSend(rnic.SendWR{Op: rnic.OpSend}),
		"post register":             q.PostSend(rnic.SendWR{Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: fast}}),
		"post receive":              q.PostRecv(rnic.RecvWR{}),
		"post receive, SRQ":         srq.PostRecv(rnic.RecvWR{}),
		"arm limit":                 srq.ArmLimit(1),
		"connect":                   q.Connect(ctx, "127.0.0.1:1", rnic.ConnParam{}),
		"reset":                     q.Reset(),
		"arm":                       cq.Arm(rnic.NextCompletion),
		"resize":                    cq.Resize(5),
		"wait":                      second(cq.Wait(ctx, make([]rnic.WC, 1))),
		"channel wait":              second(ch.Wait(ctx)),
		"channel descriptor":        second(ch.FD()),
		"accept":                    second(listener.Accept(ctx)),
	} {
		wantRefused(t, name, err, rnic.ErrClosed)
	}
	for name, err := range map[string]error{
		"disconnect": q.Disconnect(ctx), "terminate": q.Terminate(ctx), // there is no stream either
	} {
		wantRefused(t, name, err, nil)
	}
	q.Abort()
	for name, o := range map[string]io.Closer{"device": l.dev, "PD": p, "MR": mr, "MW": w, "SRQ": srq, "channel": ch, "CQ": cq, "QP": q, "listener": listener} {
		if err := o.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if mr.Valid() || w.Valid() || cq.Poll(make([]rnic.WC, 1)) != 0 || ch.Poll() != nil {
		t.Error("something lives on")
	}
	if _, ok := l.dev.PollEvent(); ok {
		t.Error("an event")
	}
	wantHoldings(t, "in the end", l.dev, [pd.NumResources]uint64{})
}

// Objects that are closed one by one say so too, while the device continues.
func TestVerbsOfAClosedObjectAreErrors(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p := l.domain()
	q := l.qp(p, rnic.QPAttr{})
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "post send", q.PostSend(rnic.SendWR{Op: rnic.OpSend}), rnic.ErrClosed)
	wantRefused(t, "post receive", q.PostRecv(rnic.RecvWR{}), rnic.ErrClosed)
	wantRefused(t, "connect", q.Connect(t.Context(), "127.0.0.1:1", rnic.ConnParam{}), rnic.ErrClosed)
	wantRefused(t, "reset", q.Reset(), rnic.ErrClosed)
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	var busy *pd.BusyError
	mr := l.region(p, make([]byte, 8), 0)
	if err := p.Close(); !errors.As(err, &busy) || busy.Resource != pd.Regions {
		t.Errorf("PD with a region: %v", err)
	}
	if err := mr.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := p.Register(make([]byte, 8), 0)
	wantRefused(t, "register", err, rnic.ErrClosed, "PD")
	_, err = p.AllocMW(rnic.Type1)
	wantRefused(t, "allocate MW", err, rnic.ErrClosed)
	_, err = p.CreateSRQ(rnic.SRQAttr{})
	wantRefused(t, "create SRQ", err, rnic.ErrClosed)
	_, err = p.CreateQP(rnic.QPAttr{SendCQ: l.cq(rnic.CQAttr{}), RecvCQ: l.cq(rnic.CQAttr{})})
	wantRefused(t, "create QP", err, rnic.ErrClosed)
}

// Objects that come into being while the device is closed end with it, or don't
// come into being.
func TestObjectsMadeDuringCloseDoNotOutliveIt(t *testing.T) {
	for range 300 {
		var plenty pd.Limits // Close may be slow to come
		for r := range plenty {
			plenty[r] = 1 << 40
		}
		l := newLab(t, rnic.Config{Network: new(simnet.Network), Limits: plenty})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for {
					p, err := l.dev.AllocPD()
					if err != nil {
						wantRefused(t, "allocate PD", err, rnic.ErrClosed)
						return
					}
					cq, err := l.dev.CreateCQ(rnic.CQAttr{Entries: 8})
					if err == nil {
						_, err = p.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
					}
					if err == nil {
						_, err = p.Register(make([]byte, 8), 0)
					}
					if err == nil && i == 0 {
						_, err = l.dev.Listen(context.Background(), ":0")
					}
					if err != nil {
						wantRefused(t, "create", err, rnic.ErrClosed)
						return
					}
				}
			})
		}
		p := l.domain()
		for range 4 {
			wg.Go(func() {
				for {
					mr, err := p.Register(make([]byte, 8), 0)
					if err == nil {
						err = mr.Close()
					}
					if err != nil {
						wantRefused(t, "register", err, rnic.ErrClosed)
						return
					}
				}
			})
		}
		if err := l.dev.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		wantHoldings(t, "in the end", l.dev, [pd.NumResources]uint64{})
	}
}

// brokenNetwork has no streams.
type brokenNetwork struct{}

var errNetwork = errors.New("no network today")

func (brokenNetwork) Dial(context.Context, string) (net.Conn, error) { return nil, errNetwork }

func (brokenNetwork) Listen(context.Context, string) (net.Listener, error) { return nil, errNetwork }

func TestErrorsOfTheNetworkArePassedOn(t *testing.T) {
	l := newLab(t, rnic.Config{Network: brokenNetwork{}})
	_, err := l.dev.Listen(t.Context(), "192.0.2.1:1")
	wantRefused(t, "listen", err, errNetwork, "192.0.2.1:1")
	q := l.qp(l.domain(), rnic.QPAttr{})
	wantRefused(t, "connect", q.Connect(t.Context(), "192.0.2.1:1", rnic.ConnParam{}), errNetwork, "192.0.2.1:1")
	if n := l.dev.Held(pd.Listeners) + l.dev.Held(pd.InboundReads) + l.dev.Held(pd.OutboundReads); n != 0 || q.State() != rnic.Idle {
		t.Errorf("%d are held; state %v", n, q.State())
	}
	system := newLab(t, rnic.Config{})
	_, err = system.dev.Listen(t.Context(), "not an address")
	wantRefused(t, "listen", err, nil, "not an address")
}

func TestEventsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLab(t, rnic.Config{Name: "loggy", Logger: slog.New(slog.NewJSONHandler(&out, nil))})
		l.raise(l.srq(l.domain(), rnic.SRQAttr{}), 1)
		var line struct{ Msg, Device, Event string }
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Device != "loggy" || !strings.Contains(line.Event, rnic.EventSRQLimit.String()) {
			t.Errorf("%s", out.Bytes())
		}
	})
}
