package rds

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/ulp/rds/wire"
)

// A proxy passes connections on. What it gets from the far end it may keep to itself.
type proxy struct {
	l     net.Listener
	to    string
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
	mute  chan struct{} // closed when connections are muted that there are; the next ones are not
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: to, mute: make(chan struct{})}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		near, err := p.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		mute := p.mute
		p.mu.Unlock()
		pass := func(from, to net.Conn, mute <-chan struct{}) {
			_, _ = io.Copy(muted{to, mute}, from)
			_, _ = from.Close(), to.Close()
		}
		p.wg.Go(func() { pass(near, far, nil) })
		p.wg.Go(func() { pass(far, near, mute) })
	}
}

// silence keeps back from now on what the far ends send on the connections that there are.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.mute)
	p.mute = make(chan struct{})
}

// muted swallows what is written after it was muted.
type muted struct {
	to   io.Writer
	mute <-chan struct{}
}

func (m muted) Write(b []byte) (int, error) {
	select {
	case <-m.mute:
		return len(b), nil
	default:
		return m.to.Write(b)
	}
}

// A peer that does not answer a Read holds up its own pair of sockets alone, and that not
// forever: the Read fails, and what is behind it continues.
func TestReadThatThePeerDoesNotAnswer(t *testing.T) {
	leakcheck.Check(t)
	w := newIWARP(t, &IWARP{AnySource: true}).(*IWARP)
	owner := nodes(t, 1, func(testing.TB) Transport { return w }, nil)[0]
	p := newProxy(t, net.JoinHostPort(owner.Addr().String(), "18634"))
	user := nodes(t, 1, func(t testing.TB) Transport {
		return newIWARP(t, &IWARP{PeerAddress: func(netip.Addr) string { return p.l.Addr().String() }})
	}, func(c *Config) {
		c.Addr = ownAddr(0)            // lower than the owner's
		c.OperationTimeout = time.Hour // or until the test lets it pass
	})[0]
	a, a2 := bind(t, owner, 4000), bind(t, owner, 4001)
	b, b2 := bind(t, user, 5000), bind(t, user, 5001)
	send(t, b, &Message{Addr: a.Addr(), Data: []byte("hello")}) // through the proxy
	receive(t, a, "hello")
	mem := pattern(1000, 1)
	cookie := offer(t, a, b, getMR(t, a, mem))

	p.silence()
	read, second := Read(cookie, 0, make([]byte, 1000)), Read(cookie, 0, make([]byte, 1000))
	send(t, b, &Message{Addr: a.Addr(), Data: []byte("read")}, With(read))
	send(t, b, &Message{Addr: a.Addr(), Data: []byte("second")}, With(second))
	send(t, b, &Message{Addr: a.Addr(), Data: []byte("behind")})
	send(t, b2, &Message{Addr: a2.Addr(), Data: []byte("other")})
	receive(t, a2, "other")
	select {
	case <-read.Done():
		t.Fatal("the Read has ended before the other message came")
	default:
	}
	user.mu.Lock()
	for _, l := range user.links {
		l.link.(*iwarpLink).patience.Reset(0)
	}
	user.mu.Unlock()
	if err := read.Wait(within(t)); read.Status() != Dropped || !errors.Is(err, ErrUnanswered) {
		t.Errorf("%v", err)
	}
	if err := second.Wait(within(t)); err != nil {
		t.Errorf("the next Read: %v", err)
	}
	receive(t, a, "second")
	receive(t, a, "behind")
}

// Closing a node ends its operations, whatever they wait for.
func TestNodeCloseEndsOperations(t *testing.T) {
	a, b := rdmaPair(t, nil)
	written, read := getMR(t, a, make([]byte, MaxRegion), ReadWrite()), getMR(t, a, make([]byte, MaxRegion), ReadWrite())
	w, r := offer(t, a, b, written), offer(t, a, b, read)
	var ops []*Operation
	for i := range 40 {
		op := Write(w, 0, make([]byte, MaxRegion))
		if i%2 == 0 {
			op = Read(r, 0, make([]byte, MaxRegion))
		}
		send(t, b, &Message{Addr: a.Addr()}, With(op))
		ops = append(ops, op)
	}
	if err := b.n.Close(); err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		select {
		case <-op.Done():
			if s := op.Status(); s != Success && s != Canceled {
				t.Errorf("%v", s)
			}
		default:
			t.Error("an operation outlives its node")
		}
	}
	if err := a.n.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*MR{written, read} {
		select {
		case <-m.Freed():
		default:
			t.Error("an MR outlives its node")
		}
	}
}

// MRs are made, used up and closed while their socket is closed: none is left.
func TestMRsOfASocketThatIsClosed(t *testing.T) {
	a, b := rdmaPair(t, nil)
	ctx, cancel := context.WithCancel(within(t))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				m, err := a.GetMR(make([]byte, 100), ReadWrite(), UseOnce())
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				if _, err := a.Send(ctx, &Message{Addr: b.Addr(), Cookie: m.Cookie()}); err != nil {
					if err := m.Close(); err != nil {
						t.Error(err)
					}
				}
				<-m.Freed()
			}
		})
	}
	used := make(chan struct{}, 1)
	wg.Go(func() {
		for {
			msg, err := b.Receive(ctx)
			if err != nil {
				return
			}
			if _, err := b.Send(ctx, &Message{Addr: msg.Addr}, With(Write(msg.Cookie, 0, make([]byte, 100)))); err != nil {
				return
			}
			select {
			case used <- struct{}{}:
			default:
			}
		}
	})
	for range 20 {
		<-used
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
	if n := a.n.MRs(); n != 0 {
		t.Errorf("%d MRs are left", n)
	}
}

// Memory of another protection domain, and the memory of connections themselves, are
// not for peers, even if they guess STags.
func TestMemoryThatIsNoMR(t *testing.T) {
	a, b := rdmaPair(t, nil)
	w := a.n.cfg.Transports[0].(*IWARP)
	pd, err := w.Device.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 100)
	mr, err := pd.RegisterMemory(rnic.Memory{Slice: mem, ZeroBased: true}, rnic.LocalWrite|rnic.RemoteWrite|rnic.RemoteRead, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(mr.Close(), pd.Close()); err != nil {
			t.Error(err)
		}
	}()
	send(t, b, &Message{Addr: a.Addr(), Data: []byte("connect")})
	receive(t, a, "connect")
	own := func() *rnic.MR {
		a.n.mu.Lock()
		defer a.n.mu.Unlock()
		for _, l := range a.n.links {
			return l.link.(*iwarpLink).mr
		}
		return nil
	}()
	for name, m := range map[string]*rnic.MR{"another domain": mr, "slots of a connection": own} {
		for _, op := range []*Operation{
			Write(wire.NewCookie(uint32(m.STag()), 0), m.Base(), pattern(100, 1)),
			Read(wire.NewCookie(uint32(m.STag()), 0), m.Base(), make([]byte, 100)),
		} {
			send(t, b, &Message{Addr: a.Addr()}, With(op))
			if err := op.Wait(within(t)); op.Status() != RemoteError {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, v := range mem {
		if v != 0 {
			t.Fatal("the memory was written")
		}
	}
}

// A message may tell of an R_Key that is nobody's, or of an MR that is not for one use.
func TestRKeysThatAreNotUsedOnce(t *testing.T) {
	a, b := rdmaPair(t, nil)
	m := getMR(t, a, make([]byte, 100), ReadWrite())
	for _, key := range []uint32{0x1234, m.Cookie().RKey(), 0} {
		o := sendOptions{}
		o.Extensions = wire.Extensions{Has: 1 << wire.ExtRDMA, RKey: key}
		if _, err := b.send(within(t), &Message{Addr: a.Addr(), Data: []byte("used")}, &o); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, a, "used").RKey; got != key {
			t.Errorf("R_Key %#x; want %#x", got, key)
		}
	}
	if n := a.MRs(); n != 1 {
		t.Errorf("%d MRs are left; want 1", n)
	}
}
