//go:build lossypath

package lossypath

import (
	"context"
	"flag"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urnic/internal/test/ownnet"
	"urnic/rnic"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/rdpllp"
)

var (
	lasts = flag.Duration("lossypath.time", 30*time.Second, "how long each kind of connection is measured")
	conns = flag.Int("lossypath.conns", 4, "how many connections there are at a time")
	loss  = flag.Float64("lossypath.loss", 0.01, "how many of the packets are lost, in each direction")
	delay = flag.Duration("lossypath.delay", 10*time.Millisecond, "the delay of each direction")
	only  = flag.String("lossypath.only", "", "the only kind to measure")
)

const (
	writeSize = 1 << 20
	inFlight  = 16
)

// tcp is the network of MPA over TCP with a congestion control of the kernel.
type tcp string

func (c tcp) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, string(c))
		})
		if err == nil {
			err = failed
		}
		return err
	}}
	return d.DialContext(ctx, "tcp4", address)
}

func (tcp) Listen(ctx context.Context, address string) (net.Listener, error) {
	var l net.ListenConfig
	return l.Listen(ctx, "tcp4", address)
}

// overRDP is DDP over RDP in segments of a packet.
func overRDP(window int, control func() congestion.Controller) rnic.Config {
	return rnic.Config{LowerLayer: rdpllp.New(rdpllp.Config{
		Window: window, Congestion: control,
		Carrier: func(ctx context.Context, a netip.AddrPort) (rdp.Carrier, error) { return rdp.UDP(ctx, a) },
	})}
}

func reno() congestion.Controller  { return congestion.NewReno(congestion.Config{}) }
func cubic() congestion.Controller { return congestion.NewCUBIC(congestion.Config{}) }

// kinds are what is compared. New devices for each, so that nothing is left of the kind before.
var kinds = []struct {
	name   string
	config func() rnic.Config
}{
	{"TCP, Reno", func() rnic.Config { return rnic.Config{Network: tcp("reno")} }},
	{"RDP, Reno", func() rnic.Config { return overRDP(0, reno) }},
	{"TCP, CUBIC", func() rnic.Config { return rnic.Config{Network: tcp("cubic")} }},
	{"RDP, CUBIC", func() rnic.Config { return overRDP(0, cubic) }},
	{"TCP, BBR", func() rnic.Config { return rnic.Config{Network: tcp("bbr")} }},
	{"RDP, none", func() rnic.Config { return overRDP(0, nil) }},
	{"RDP, none, window 256", func() rnic.Config { return overRDP(256, nil) }},
}

// How long RDMA Writes of 1 MiB take, 16 of them in flight on each connection: from posting one to its completion
// at the receiver, as Immediate Data shows. The table is the result; nothing fails because a figure is
// small. The last column is the round trip that the path had: on a loaded machine packets come late.
func TestWritesOverALossyPath(t *testing.T) {
	passFlags(t)
	ownnet.Run(t, func(t *testing.T) {
		p := newPath(t, *loss, *delay)
		t.Logf("loss %.1f %%, delay %v in each direction, MTU %d; %d connections, each with %d Writes of %d bytes in flight, for %v",
			100**loss, *delay, mtu, *conns, inFlight, writeSize, *lasts)
		t.Logf("%-24s %7s %10s %9s %9s %9s %10s", "", "Writes", "MB/s each", "p50 (s)", "p99 (s)", "max (s)", "trip (ms)")
		for _, k := range kinds {
			if *only != "" && *only != k.name {
				continue
			}
			was, late := p.packets.Load()-p.lost.Load(), p.late.Load()
			all := measure(t, k.config)
			late, was = p.late.Load()-late, p.packets.Load()-p.lost.Load()-was
			if len(all) == 0 {
				t.Errorf("%s: no Write was done in %v", k.name, *lasts)
				continue
			}
			slices.Sort(all)
			at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() }
			rate := float64(len(all)) * writeSize / lasts.Seconds() / float64(*conns) / 1e6
			trip := 2e3 * (*delay + time.Duration(late/max(was, 1))).Seconds()
			t.Logf("%-24s %7d %10.2f %9.3f %9.3f %9.3f %10.1f", k.name, len(all), rate, at(0.5), at(0.99), at(1), trip)
		}
		n, lost := p.packets.Load(), p.lost.Load()
		t.Logf("%d packets, %d lost; %s dropped by the queue of the device; each %v later than it should be on average, %v at most",
			n, lost, p.dropped(t), time.Duration(p.late.Load()/(n-lost)), time.Duration(p.latest.Load()))
	})
}

// passFlags passes the flags of this package on to the process that has a network of its own.
func passFlags(t *testing.T) {
	t.Helper()
	const variable = "URNIC_LOSSYPATH_FLAGS"
	if !ownnet.Inside() {
		var set []string
		flag.Visit(func(f *flag.Flag) {
			if strings.HasPrefix(f.Name, "lossypath.") {
				set = append(set, f.Name+"="+f.Value.String())
			}
		})
		t.Setenv(variable, strings.Join(set, ";"))
		return
	}
	for f := range strings.SplitSeq(os.Getenv(variable), ";") {
		if name, value, ok := strings.Cut(f, "="); ok {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// measure runs Writes over connections of a kind, and returns how long each took that was done in
// time. The first ones, which find no others in front of them, do not count.
func measure(t *testing.T, config func() rnic.Config) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	var group sync.WaitGroup
	ready, begin := make(chan struct{}, *conns), make(chan struct{})
	for range *conns {
		w := newWriter(ctx, t, config)
		defer w.close(t)
		group.Go(func() {
			took, err := w.run(ctx, ready, begin)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	for range *conns {
		<-ready // its pipe is full
	}
	close(begin)
	time.Sleep(*lasts)
	cancel()
	group.Wait()
	return all
}

// A writer is a connection between two devices: what it writes, it sees arrive.
type writer struct {
	from, to side
	source   *rnic.MR
	target   *rnic.MR
}

type side struct {
	*rnic.Device
	pd   *rnic.PD
	qp   *rnic.QP
	sent *rnic.CQ
	got  *rnic.CQ
}

func newSide(t *testing.T, cfg rnic.Config) (s side) {
	t.Helper()
	var err error
	check := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Device, err = rnic.Open(cfg)
	check()
	s.pd, err = s.AllocPD()
	check()
	s.sent, err = s.CreateCQ(rnic.CQAttr{})
	check()
	s.got, err = s.CreateCQ(rnic.CQAttr{})
	check()
	s.qp, err = s.pd.CreateQP(rnic.QPAttr{SendCQ: s.sent, RecvCQ: s.got, MaxSendWR: 2 * inFlight, MaxRecvWR: 2 * inFlight, MaxSGE: 1})
	check()
	return s
}

func newWriter(ctx context.Context, t *testing.T, config func() rnic.Config) *writer {
	t.Helper()
	w := &writer{from: newSide(t, config()), to: newSide(t, config())}
	var err error
	if w.source, err = w.from.pd.Register(make([]byte, writeSize), rnic.LocalWrite); err != nil {
		t.Fatal(err)
	}
	// Each Write has a place of its own: over RDP, one may overtake the other.
	if w.target, err = w.to.pd.Register(make([]byte, inFlight*writeSize), rnic.LocalWrite|rnic.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	for range 2 * inFlight {
		if err := w.to.qp.PostRecv(rnic.RecvWR{}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := w.to.Listen(ctx, net.JoinHostPort(near, "0"))
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Accept(ctx, w.to.qp, rnic.ConnParam{})
		}
		accepted <- err
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.from.qp.Connect(ctx, net.JoinHostPort(far, port), rnic.ConnParam{}); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	return w
}

// run keeps inFlight Writes under way until the context ends. Those count that end after begin.
func (w *writer) run(ctx context.Context, ready chan<- struct{}, begin <-chan struct{}) (took []time.Duration, err error) {
	var posted [inFlight]time.Time
	post := func(i int) error {
		posted[i] = time.Now()
		return w.from.qp.PostSend(rnic.SendWR{
			ID: uint64(i), Op: rnic.OpWriteImmediate, SGL: []rnic.SGE{w.source.SGE(0, writeSize)},
			Remote: w.target.Remote(i * writeSize), Immediate: [8]byte{byte(i)},
		})
	}
	for i := range inFlight {
		if err := post(i); err != nil {
			return nil, err
		}
	}
	counts := false
	var wcs [inFlight]rnic.WC
	for n := 0; ; {
		k, err := w.to.got.Wait(ctx, wcs[:])
		if err != nil {
			return took, err
		}
		now := time.Now()
		for _, wc := range wcs[:k] {
			if err := wc.Err(); err != nil {
				return took, err
			}
			i := int(wc.Immediate[0])
			if counts {
				took = append(took, now.Sub(posted[i]))
			}
			if n++; n == inFlight {
				ready <- struct{}{}
			}
			if err := w.to.qp.PostRecv(rnic.RecvWR{}); err != nil {
				return took, err
			}
			if err := w.reap(); err != nil {
				return took, err
			}
			if err := post(i); err != nil {
				return took, err
			}
		}
		select {
		case <-begin:
			counts = true
		default:
		}
	}
}

// reap takes the completions at the sender. They say only that the layer below has taken the data.
func (w *writer) reap() error {
	var wcs [2 * inFlight]rnic.WC
	for _, wc := range wcs[:w.from.sent.Poll(wcs[:])] {
		if err := wc.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) close(t *testing.T) {
	t.Helper()
	for _, s := range []side{w.from, w.to} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
