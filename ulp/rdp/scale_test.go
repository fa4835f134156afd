package rdp

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"urnic/ulp/rdp/machine"
)

// 10,000 idle connections take no more than 64 MiB, with both of their ends in this process.
func TestManyIdleConnectionsFitTheirMemory(t *testing.T) {
	const limit = 64 << 20
	count := 10_000
	if raceEnabled {
		count = 1000
	}
	a, b := twoOn(t, onUDP(t, "127.0.0.1:0"), onUDP(t, "127.0.0.1:0"), machine.Config{AckDelay: -1})
	l, err := b.Listen(ListenConfig{Port: 99, Params: Params{Keepalive: -1}})
	if err != nil {
		t.Fatal(err)
	}
	before := memory()
	var conns []*Conn
	for i := range count {
		c, err := a.Dial(t.Context(), DialConfig{Host: b.LocalAddr(), Port: 99, Local: uint16(1024 + i), Params: Params{Keepalive: -1}})
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		to, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(t.Context(), []byte("used once")); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c, to)
	}
	took := memory() - before
	t.Logf("%d connections take %d KiB, %d bytes for each end", count, took>>10, took/len(conns))
	if !raceEnabled && took > limit {
		t.Errorf("that is more than %d MiB", limit>>20)
	}
	if n := a.Conns(); n != count || len(conns) != 2*count {
		t.Errorf("%d connections are there", n)
	}
}

// memory is what the process has of heap and stacks.
func memory() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// BenchmarkOneWay moves messages over UDP, beside datagrams of the same size without RDP.
func BenchmarkOneWay(b *testing.B) {
	for _, size := range []int{1400, 16 << 10, 60 << 10} {
		b.Run(fmt.Sprintf("rdp, %d bytes", size), func(b *testing.B) { oneWay(b, size) })
		b.Run(fmt.Sprintf("udp, %d bytes", size), func(b *testing.B) { bareUDP(b, size) })
	}
}

func oneWay(b *testing.B, size int) {
	var es [2]*Endpoint
	for i := range es {
		c, err := UDP(b.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
		if err != nil {
			b.Fatal(err)
		}
		if es[i], err = Open(b.Context(), Config{Carrier: c}); err != nil {
			b.Fatal(err)
		}
		defer es[i].Close()
	}
	p := Params{MaxSegment: largest, AckRead: true}
	l, err := es[1].Listen(ListenConfig{Port: 9, Params: p})
	if err != nil {
		b.Fatal(err)
	}
	from, err := es[0].Dial(b.Context(), DialConfig{Host: es[1].LocalAddr(), Port: 9, Params: p})
	if err != nil {
		b.Fatal(err)
	}
	to, err := l.Accept(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		msgs := make([][]byte, 64)
		for i := range msgs {
			msgs[i] = make([]byte, size)
		}
		for n := b.N; n > 0; {
			k := min(n, len(msgs))
			if _, err := from.SendAll(b.Context(), msgs[:k]...); err != nil {
				b.Error(err)
				return
			}
			n -= k
		}
	}()
	batch := make([]Message, 0, 64)
	for n := 0; n < b.N; {
		if err := to.AwaitMessage(b.Context()); err != nil {
			b.Fatal(err)
		}
		got, err := to.TryReceiveAll(batch[:0])
		if err != nil {
			b.Fatal(err)
		}
		n += len(got)
		to.Free(got...)
	}
}

// bareUDP moves datagrams with the same system calls. The receiver tells the sender now and then how many have come, as
// datagrams would be lost otherwise.
func bareUDP(b *testing.B, size int) {
	var cs [2]*udpCarrier
	for i := range cs {
		c, err := UDP(b.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
		if err != nil {
			b.Fatal(err)
		}
		cs[i] = c.(*udpCarrier)
		defer cs[i].close() //nolint:errcheck // it is over
	}
	const window = 64
	from, to := cs[0], cs[1]
	credit := make(chan int, window)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		out := from.newBatch()
		defer from.freeBatch(out)
		room := window
		for n := b.N; n > 0; {
			for room == 0 {
				room += <-credit
			}
			for room > 0 && n > 0 {
				mem := out.room(largest)
				if mem == nil {
					break
				}
				out.add(size, to.LocalAddr())
				room--
				n--
			}
			if err := out.send(); err != nil {
				b.Error(err)
				return
			}
			select {
			case k := <-credit:
				room += k
			default:
			}
		}
	}()
	for n := 0; n < b.N; {
		got := 0
		if err := to.receive(func(netip.AddrPort, []byte) { got++ }, func(netip.AddrPort, []byte) {}); err != nil {
			b.Fatal(err)
		}
		n += got
		credit <- got
	}
}
