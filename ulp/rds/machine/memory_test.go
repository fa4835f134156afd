package machine

import (
	"testing"
)

// A receive buffer that is larger than the memory of a peer would never be full: its senders would never be told.
func TestReceiveBufferIsWithinTheMemoryOfAPeer(t *testing.T) {
	cfg := Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers["tcp"]}}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Bind(4000, 0, 16<<20+1); err == nil {
		t.Error("a socket may have a receive buffer of more than PeerMemory")
	}
	if _, err := m.Bind(4000, 0, 16<<20); err != nil {
		t.Error(err)
	}
	cfg.ReceiveBuffer = 16<<20 + 1
	if _, err := New(cfg); err == nil {
		t.Error("a node may have a ReceiveBuffer of more than PeerMemory")
	}
	for name, small := range map[string]func(*Config){
		"PeerMemory": func(c *Config) { c.PeerMemory = 1000 }, "NodeMemory": func(c *Config) { c.NodeMemory = 1000 },
		"much PeerMemory": func(c *Config) { c.PeerMemory = 1 << 30 },
	} {
		cfg := Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers["tcp"]}}
		small(&cfg)
		if _, err := New(cfg); err != nil {
			t.Errorf("%s alone: %v", name, err)
		}
	}
}

// Sockets that are not read make their ports congested before their messages take all memory of the peer: what it
// sends to a socket that is read still comes.
func TestUnreadSocketsLeaveMemory(t *testing.T) {
	r := newRawPeer(t, Params{}, func(c *Config) { c.ReceiveBuffer, c.PeerMemory = 0, 0 })
	var unread []*Socket
	for range 1000 {
		unread = append(unread, r.bind())
	}
	read := r.bind()
	send := func(to *Socket, n int) {
		t.Helper()
		h := r.data(n)
		h.DestPort = to.Port()
		for left := n; ; left -= 1024 {
			if r.says(h, make([]byte, min(left, 1024))) != Take {
				t.Fatalf("there is no memory; %d bytes are held", r.m.Held())
			}
			if left <= 1024 {
				break
			}
		}
	}
	for range 20 {
		for _, s := range unread {
			if !r.m.local.Congested(s.Port()) {
				send(s, 10_000)
			}
			send(read, 1000)
			if _, ok := read.Receive(r.now); !ok || r.m.local.Congested(read.Port()) {
				t.Fatal("the socket that is read gets nothing, or stays congested")
			}
		}
	}
	if held, least := r.m.Held(), 11<<20; held < least {
		t.Errorf("%d bytes are held; %d are allowed", held, 16<<20)
	}
	for _, s := range unread {
		for {
			if _, ok := s.Receive(r.now); !ok {
				break
			}
		}
		if r.m.local.Congested(s.Port()) {
			t.Fatal("a port stays congested though nothing is unread")
		}
	}
}
