package machine

import (
	"errors"
	"testing"
)

// writableOf counts how often sockets were told that they can send again.
func writableOf(m *Machine) map[*Socket]int {
	told := map[*Socket]int{}
	for todo := m.Effects(); todo != nil; todo = m.Effects() {
		for _, e := range todo {
			if e.Kind == Writable {
				told[e.Socket]++
			}
		}
	}
	return told
}

func loopNode(t *testing.T, cfg Config) (m *Machine, bind func(receive int) *Socket) {
	t.Helper()
	cfg.Addr, cfg.Generation, cfg.Carriers = here, 1, []Carrier{carriers["tcp"]}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, func(receive int) *Socket {
		t.Helper()
		s, err := m.Bind(0, 0, receive)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// Who sends to a socket of its own node that does not read is refused when the port is
// congested, and told when it is not any more.
func TestOwnPortIsCongested(t *testing.T) {
	m, bind := loopNode(t, Config{})
	from, idle, to := bind(0), bind(0), bind(4000)
	send := func() error {
		_, err := from.Send(0, Endpoint{here, to.Port()}, make([]byte, 1000), Options{})
		return err
	}
	for range 4 {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(); !errors.Is(err, ErrCongested) {
		t.Fatalf("with 4000 of 4000 bytes unread: %v", err)
	}
	for reads := range 3 {
		if told := writableOf(m); told[from]+told[idle] > 0 {
			t.Fatalf("after %d reads: %v may send", reads, told)
		}
		if _, ok := to.Receive(0); !ok {
			t.Fatal("there is nothing to receive")
		}
	}
	if told := writableOf(m); told[from] != 1 || told[idle] != 0 {
		t.Errorf("the sender was told %d times, a socket that has sent nothing %d times", told[from], told[idle])
	}
	if err := send(); err != nil {
		t.Error(err)
	}
}

// The unread messages of a node to itself are bounded, however many sockets they are for,
// whether they ignore congestion or not.
func TestOwnUnreadMessagesAreBounded(t *testing.T) {
	m, bind := loopNode(t, Config{PeerMemory: 10_000})
	from := bind(0)
	var to []*Socket
	for {
		s := bind(0)
		_, err := from.Send(0, Endpoint{here, s.Port()}, make([]byte, 1000), Options{IgnoreCongestion: true})
		if errors.Is(err, ErrBufferFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if to = append(to, s); m.Held() > 10_000 {
			t.Fatalf("%d bytes are held", m.Held())
		}
	}
	if len(to) != 10 {
		t.Errorf("%d messages of 1000 bytes are held in 10,000 bytes", len(to))
	}
	if told := writableOf(m); told[from] != 0 {
		t.Error("the sender may go on before anything was read")
	}
	to[0].Close(0)
	if m.Held() != 9000 {
		t.Fatalf("%d bytes are held after a socket with 1000 was closed", m.Held())
	}
	if told := writableOf(m); told[from] != 1 {
		t.Errorf("the sender is told %d times that there is room", told[from])
	}
}

// A socket that is closed while it waits is not kept.
func TestClosedSocketsDoNotWait(t *testing.T) {
	m, bind := loopNode(t, Config{})
	to := bind(1)
	first := bind(0)
	if _, err := first.Send(0, Endpoint{here, to.Port()}, []byte("x"), Options{}); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		s := bind(0)
		if _, err := s.Send(0, Endpoint{here, to.Port()}, []byte("x"), Options{}); !errors.Is(err, ErrCongested) {
			t.Fatal(err)
		}
		s.Close(0)
	}
	if n := len(m.own.congested.sockets) + len(m.own.congested.at); n != 0 {
		t.Errorf("%d sockets wait that are closed", n)
	}
}
