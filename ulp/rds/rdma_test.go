package rds

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/rds/wire"
)

// rdmaPair makes two nodes over iwarp, each with a socket.
func rdmaPair(t *testing.T, change func(*Config)) (a, b *Socket) {
	t.Helper()
	leakcheck.Check(t)
	ns := nodes(t, 2, transports["iwarp"], change)
	return bind(t, ns[0], 4000), bind(t, ns[1], 5000)
}

// pattern returns n bytes that depend on seed.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*31 + byte(i>>8) + seed
	}
	return b
}

func getMR(t *testing.T, s *Socket, buf []byte, options ...MROption) *MR {
	t.Helper()
	m, err := s.GetMR(buf, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// receive receives a message that is wanted.
func receive(t *testing.T, s *Socket, want string) *Message {
	t.Helper()
	msg, err := s.Receive(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if string(msg.Data) != want {
		t.Fatalf("%q came; want %q", msg.Data, want)
	}
	return msg
}

func send(t *testing.T, s *Socket, msg *Message, options ...SendOption) {
	t.Helper()
	if _, err := s.Send(within(t), msg, options...); err != nil {
		t.Fatal(err)
	}
}

// offer sends the cookie of an MR, and returns it as it has come.
func offer(t *testing.T, owner, user *Socket, m *MR) wire.Cookie {
	t.Helper()
	send(t, owner, &Message{Addr: user.Addr(), Data: []byte("use it"), Cookie: m.Cookie()})
	return receive(t, user, "use it").Cookie
}

// A cookie opens memory to the peer, which writes to it before its message comes, and
// reads from it before its message goes.
func TestWriteAndReadByCookie(t *testing.T) {
	a, b := rdmaPair(t, nil)
	for _, pair := range [][2]*Socket{{a, b}, {b, a}} {
		owner, user := pair[0], pair[1]
		for _, size := range []int{1, 1000, 4096, 65_537, MaxRegion} {
			mem := make([]byte, size)
			m := getMR(t, owner, mem, ReadWrite())
			cookie := offer(t, owner, user, m)
			want := pattern(size, 1)
			k := size / 3
			w := Write(cookie, 0, want[:k], nil, want[k:])
			send(t, user, &Message{Addr: owner.Addr(), Data: []byte("written")}, With(w))
			if got := receive(t, owner, "written").RKey; got != m.Cookie().RKey() {
				t.Errorf("%d bytes: the message tells of R_Key %#x; want %#x", size, got, m.Cookie().RKey())
			}
			if !bytes.Equal(mem, want) {
				t.Errorf("%d bytes: the memory does not hold what was written", size)
			}
			if err := w.Wait(within(t)); err != nil || w.Status() != Success {
				t.Errorf("%d bytes: %v", size, err)
			}

			copy(mem, pattern(size, 2))
			got := make([]byte, size-k)
			r := Read(cookie, uint64(k), got[:len(got)/2], got[len(got)/2:])
			send(t, user, &Message{Addr: owner.Addr(), Data: []byte("read")}, With(r))
			receive(t, owner, "read")
			clear(mem) // it is read, and so belongs to the owner
			if err := r.Wait(within(t)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, pattern(size, 2)[k:]) {
				t.Errorf("%d bytes: not what the memory held", size)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := owner.MRs(); n != 0 {
			t.Errorf("%d MRs are left", n)
		}
	}
}

func TestAtomicsByCookie(t *testing.T) {
	a, b := rdmaPair(t, nil)
	mem := make([]byte, 16)
	binary.NativeEndian.PutUint64(mem[8:], 5)
	cookie := offer(t, a, b, getMR(t, a, mem, Atomics()))
	for i, tt := range []struct {
		op       *Operation
		original uint64
		want     uint64
	}{
		{FetchAdd(cookie, 8, 7, 0), 5, 12},
		{CmpSwap(cookie, 8, 12, 99, ^uint64(0), ^uint64(0)), 12, 99},
		{CmpSwap(cookie, 8, 12, 1, ^uint64(0), ^uint64(0)), 99, 99},
		{CmpSwap(cookie, 8, 0x63, 0x0f00, 0xff, 0xff00), 99, 0x0f63},
		{CmpSwap(cookie, 8, 0x63, 1, 0, 0), 0x0f63, 0x0f63},
		{CmpSwap(cookie, 8, 0x0f63, 1, 0, 0), 0x0f63, 1},
	} {
		send(t, b, &Message{Addr: a.Addr(), Data: []byte("atomic")}, With(tt.op))
		if err := tt.op.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		if msg := receive(t, a, "atomic"); msg.RKey != 0 {
			t.Errorf("%d: the message tells of an R_Key", i)
		}
		if now := binary.NativeEndian.Uint64(mem[8:]); tt.op.Original() != tt.original || now != tt.want {
			t.Errorf("%d: %d was there, and now %d; want %d and %d", i, tt.op.Original(), now, tt.original, tt.want)
		}
	}
}

// An MR for one use is freed by the message that tells of the operation, and only by one for its
// R_Key; others stay.
func TestUseOnce(t *testing.T) {
	a, b := rdmaPair(t, nil)
	mem := make([]byte, 300)
	once := getMR(t, a, mem[:100], ReadWrite(), UseOnce())
	other := getMR(t, a, mem[100:200], ReadWrite(), UseOnce())
	kept := getMR(t, a, mem[200:], ReadWrite())
	for _, m := range []*MR{once, kept} {
		send(t, b, &Message{Addr: a.Addr(), Data: []byte("used")}, With(Write(offer(t, a, b, m), 0, pattern(100, 3))))
		receive(t, a, "used")
	}
	<-once.Freed()
	if n := a.MRs(); n != 2 {
		t.Errorf("there are %d MRs; want 2", n)
	}
	for _, m := range []*MR{other, kept} {
		select {
		case <-m.Freed():
			t.Error("an MR is freed that was not for one use, or was not used")
		default:
		}
	}
	if _, err := a.Send(within(t), &Message{Addr: b.Addr(), Cookie: once.Cookie()}); !errors.Is(err, ErrCookie) {
		t.Errorf("the cookie of an MR that is freed: %v", err)
	}
	again := Write(once.Cookie(), 0, pattern(100, 4))
	send(t, b, &Message{Addr: a.Addr(), Data: []byte("used again")}, With(again))
	if err := again.Wait(within(t)); again.Status() != RemoteError {
		t.Errorf("the second use: %v", err)
	}
	if !bytes.Equal(mem[:100], pattern(100, 3)) {
		t.Error("the second use has changed the memory")
	}
}

// What the peer's RNIC refuses fails, and ends the connection. The messages before and
// behind it come, once and in order.
func TestOperationsThatThePeerRefuses(t *testing.T) {
	a, b := rdmaPair(t, func(c *Config) {
		if c.Addr.As4()[3] == 1 {
			return // the owner of the memory, for which a refused operation is a violation
		}
		c.Events = func(e Event) {
			if e.Kind == PeerViolation {
				t.Errorf("the peer that refuses is said to have broken a rule: %v", e.Err)
			}
		}
	})
	mem := make([]byte, 200)
	writable, readable := getMR(t, a, mem[:100], ReadWrite()), getMR(t, a, mem[100:])
	closed := getMR(t, a, mem[:50], ReadWrite())
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	foreign := bind(t, b.n, 6000) // of another domain: the peer has none with this STag
	strange := getMR(t, foreign, make([]byte, 100), ReadWrite())
	local := pattern(100, 5)
	for name, bad := range map[string]func() *Operation{
		"write, closed":        func() *Operation { return Write(closed.Cookie(), 0, local[:50]) },
		"write, made up":       func() *Operation { return Write(0x1234, 0, local) },
		"write, of this node":  func() *Operation { return Write(strange.Cookie(), 0, local) },
		"write, too long":      func() *Operation { return Write(writable.Cookie(), 1, local) },
		"write, bogus offset":  func() *Operation { return Write(wire.NewCookie(writable.Cookie().RKey(), 1<<31), 0, local) },
		"write, far away":      func() *Operation { return Write(writable.Cookie(), 1<<62, local) },
		"write, to be read":    func() *Operation { return Write(readable.Cookie(), 0, local) },
		"read, closed":         func() *Operation { return Read(closed.Cookie(), 0, make([]byte, 50)) },
		"read, made up":        func() *Operation { return Read(0x1234, 0, make([]byte, 50)) },
		"read, too long":       func() *Operation { return Read(readable.Cookie(), 1, make([]byte, 100)) },
		"read, in two":         func() *Operation { return Read(readable.Cookie(), 1, make([]byte, 50), make([]byte, 50)) },
		"fetch-add, no right":  func() *Operation { return FetchAdd(writable.Cookie(), 0, 1, 0) },
		"fetch-add, made up":   func() *Operation { return FetchAdd(0x1234, 0, 1, 0) },
		"cmp-swap, too far":    func() *Operation { return CmpSwap(writable.Cookie(), 96, 1, 2, 0, 0) },
		"silent write, closed": func() *Operation { return Write(closed.Cookie(), 0, local[:50]) },
	} {
		t.Run(name, func(t *testing.T) {
			good := Write(writable.Cookie(), 0, pattern(100, 6))
			read := make([]byte, 10)
			goodRead := Read(readable.Cookie(), 0, read)
			send(t, b, &Message{Addr: a.Addr(), Data: []byte("before")})
			op := bad()
			if name[0] == 's' {
				send(t, b, &Message{Addr: a.Addr()}, With(op), Silent())
			} else {
				send(t, b, &Message{Addr: a.Addr(), Data: []byte("refused")}, With(op))
			}
			send(t, b, &Message{Addr: a.Addr(), Data: []byte("behind")})
			send(t, b, &Message{Addr: a.Addr(), Data: []byte("good")}, With(good))
			send(t, b, &Message{Addr: a.Addr(), Data: []byte("good read")}, With(goodRead))
			err := op.Wait(within(t))
			for op.isAtomic() && op.Status() == Dropped {
				// The connection was lost before, as both sides had made one.
				op = bad()
				send(t, b, &Message{Addr: a.Addr(), Data: []byte("refused")}, With(op))
				err = op.Wait(within(t))
			}
			var failed *OperationError
			if !errors.As(err, &failed) || failed.Status != RemoteError {
				t.Errorf("%v", err)
			}
			for _, want := range []string{"before", "behind", "good", "good read"} {
				receive(t, a, want)
			}
			for _, op := range []*Operation{good, goodRead} {
				if err := op.Wait(within(t)); err != nil {
					t.Errorf("the good one: %v", err)
				}
			}
			if !bytes.Equal(mem[:100], pattern(100, 6)) {
				t.Error("the memory holds something else than the good operation has written")
			}
		})
	}
}

func TestWhatGetMRAndWithRefuse(t *testing.T) {
	a, b := rdmaPair(t, func(c *Config) { c.SocketMRs, c.NodeMRs = 2, 3 })
	tcp := bind(t, nodes(t, 1, transports["tcp"], func(c *Config) { c.Addr = c.Addr.Next().Next() })[0], 4000)
	buf := make([]byte, MaxRegion+1)
	want := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", what, err, want)
		}
	}
	mr := func(s *Socket, buf []byte, options ...MROption) error {
		_, err := s.GetMR(buf, options...)
		return err
	}
	want("an MR over TCP", mr(tcp, buf[:1]), ErrNotSupported)
	want("an MR over a transport that is not there", mr(a, buf[:1], MRVia(1)), ErrNotSupported)
	want("an empty MR", mr(a, nil), ErrRegion)
	want("an MR that is too long", mr(a, buf), ErrRegion)
	want("atomics, unaligned", mr(a, buf[1:], Atomics()), ErrRegion)
	first := getMR(t, a, buf[:10])
	getMR(t, a, buf[:MaxRegion])
	want("too many MRs of the socket", mr(a, buf[:1]), ErrTooManyMRs)
	other := bind(t, a.n, 0)
	getMR(t, other, buf[:1])
	want("too many MRs of the node", mr(other, buf[:1]), ErrTooManyMRs)
	if n := a.n.MRs(); n != 3 {
		t.Errorf("the node has %d MRs", n)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	want("an MR of a closed socket", mr(other, buf[:1]), ErrClosed)
	if n := a.n.MRs(); n != 2 {
		t.Errorf("the node has %d MRs when a socket is closed", n)
	}

	to := func(s *Socket, addr Addr, msg Message, options ...SendOption) error {
		msg.Addr = addr
		_, err := s.Send(within(t), &msg, options...)
		return err
	}
	cookie := first.Cookie()
	want("a cookie of another socket", to(b, a.Addr(), Message{Cookie: cookie}), ErrCookie)
	want("a cookie over TCP", to(tcp, b.Addr(), Message{Cookie: cookie}), ErrCookie)
	want("an operation over TCP", to(tcp, b.Addr(), Message{}, With(Write(cookie, 0, buf[:1]))), ErrNotSupported)
	want("an operation to oneself", to(a, a.Addr(), Message{}, With(Write(cookie, 0, buf[:1]))), ErrNotSupported)
	want("too many bytes", to(b, a.Addr(), Message{}, With(Write(cookie, 0, buf))), ErrOperation)
	want("too many buffers", to(b, a.Addr(), Message{}, With(Read(cookie, 0, make([][]byte, MaxLocal+1)...))), ErrOperation)
	want("beyond all offsets", to(b, a.Addr(), Message{}, With(Write(cookie, ^uint64(0), buf[:2]))), ErrOperation)
	want("nothing", to(b, a.Addr(), Message{}, With(&Operation{})), ErrOperation)
	want("silence with data", to(b, a.Addr(), Message{Data: buf[:1]}, With(Write(cookie, 0)), Silent()), ErrSilent)
	want("silence alone", to(b, a.Addr(), Message{}, Silent()), ErrSilent)
	op := Read(cookie, 0, buf[:1])
	want("too long a message", to(b, a.Addr(), Message{Data: make([]byte, wire.MaxMessage+1)}, With(op)), ErrTooLong)
	want("the operation that was refused", to(b, a.Addr(), Message{}, With(op)), nil)
	want("an operation twice", to(b, a.Addr(), Message{}, With(op)), ErrOperation)
	want("its end", op.Wait(within(t)), nil)
	var none context.Context
	want("no context", op.Wait(none), ErrNoContext)
}

// A silent operation is done, and known to be, without a message.
func TestSilentOperations(t *testing.T) {
	a, b := rdmaPair(t, nil)
	mem := make([]byte, 100)
	cookie := offer(t, a, b, getMR(t, a, mem, ReadWrite()))
	for i := range byte(3) {
		w := Write(cookie, 0, pattern(100, i))
		send(t, b, &Message{Addr: a.Addr()}, With(w), Silent())
		if err := w.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 100)
		r := Read(cookie, 0, got)
		send(t, b, &Message{Addr: a.Addr()}, With(r), Silent())
		if err := r.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, pattern(100, i)) {
			t.Error("not what was written")
		}
	}
	send(t, b, &Message{Addr: a.Addr(), Data: []byte("the first")})
	receive(t, a, "the first")
}

// Closing a socket frees its MRs, and ends its operations.
func TestSocketCloseEndsOperations(t *testing.T) {
	a, b := rdmaPair(t, nil)
	m := getMR(t, a, make([]byte, 1000), ReadWrite())
	cookie := offer(t, a, b, m)
	ops := []*Operation{Write(cookie, 0, pattern(1000, 0)), Read(cookie, 0, make([]byte, 1000))}
	nobody := Addr{Host: a.Addr().Host.Next().Next(), Port: 1000}
	for _, op := range ops {
		send(t, b, &Message{Addr: nobody}, With(op)) // which is not sent
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if err := op.Wait(within(t)); op.Status() != Canceled {
			t.Errorf("%v", err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.Freed():
	default:
		t.Error("the MR outlives its socket")
	}
}

// Operations of several sockets, both ways, while connections are cut: each is done, or it
// says that it may not be; messages come once and in order, and a message behind a Write
// finds what was written.
func TestOperationsSurviveTheirConnections(t *testing.T) {
	leakcheck.Check(t)
	ns := nodes(t, 2, transports["iwarp"], nil)
	ctx := within(t)
	const sockets, rounds = 6, 120
	var wg sync.WaitGroup
	progress := make(chan struct{}, sockets*rounds)
	for i := range uint16(sockets) {
		owner, user := bind(t, ns[i%2], 100+i), bind(t, ns[1-i%2], 200+i)
		wg.Go(func() { offerRounds(ctx, t, owner, user.Addr(), rounds, progress) })
		wg.Go(func() { useRounds(ctx, t, user, rounds) })
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	rng := rand.New(rand.NewPCG(2, 2))
	cuts, next := 0, 1
	for n := 1; ; n++ {
		select {
		case <-progress:
		case <-over:
			t.Logf("%d cuts", cuts)
			return
		}
		if n == next {
			ns[rng.IntN(2)].cut(rng)
			cuts++
			next += 1 + rng.IntN(10)
		}
	}
}

// offerRounds offers memory again and again, and checks what the peer has done with it.
func offerRounds(ctx context.Context, t *testing.T, s *Socket, to Addr, rounds uint32, progress chan<- struct{}) {
	rng := rand.New(rand.NewPCG(uint64(s.port), 0))
	for k := range rounds {
		size := 1 + rng.IntN(1<<rng.IntN(18))
		mem := pattern(2*size, byte(k))
		m, err := s.GetMR(mem, ReadWrite(), UseOnce())
		if err != nil {
			t.Error(err)
			return
		}
		ask := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, k), uint32(size))
		if _, err := s.Send(ctx, &Message{Addr: to, Data: ask, Cookie: m.Cookie()}); err != nil {
			t.Error(err)
			return
		}
		for _, part := range []byte{'r', 'w'} { // the Read is silent, so that only the Write frees the memory
			msg, err := s.Receive(ctx)
			if err != nil {
				t.Errorf("socket %d, round %d, %c: %v", s.port, k, part, err)
				return
			}
			if msg.Data[0] != part || binary.BigEndian.Uint32(msg.Data[1:]) != k {
				t.Errorf("socket %d, round %d: %q came; want %c", s.port, k, msg.Data, part)
				return
			}
		}
		<-m.Freed()
		if !bytes.Equal(mem, append(pattern(size, byte(k)), pattern(size, byte(k))...)) {
			t.Errorf("socket %d, round %d: the memory of %d bytes does not hold what was written", s.port, k, size)
			return
		}
		progress <- struct{}{}
	}
}

// useRounds reads the first half of the memory that it is offered, and writes it to the
// second half.
func useRounds(ctx context.Context, t *testing.T, s *Socket, rounds uint32) {
	for range rounds {
		msg, err := s.Receive(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		k, size := msg.Data[:4], binary.BigEndian.Uint32(msg.Data[4:])
		half := make([]byte, size)
		read := Read(msg.Cookie, 0, half)
		if _, err := s.Send(ctx, &Message{Addr: msg.Addr}, With(read), Silent()); err != nil {
			t.Error(err)
			return
		}
		if err := read.Wait(ctx); err != nil {
			t.Errorf("socket %d: %v", s.port, err)
			return
		}
		if err := s.SendTo(ctx, append([]byte{'r'}, k...), msg.Addr); err != nil {
			t.Error(err)
			return
		}
		write := Write(msg.Cookie, uint64(size), half)
		if _, err := s.Send(ctx, &Message{Addr: msg.Addr, Data: append([]byte{'w'}, k...)}, With(write)); err != nil {
			t.Error(err)
			return
		}
		if err := write.Wait(ctx); err != nil {
			t.Errorf("socket %d: %v", s.port, err)
			return
		}
	}
}
