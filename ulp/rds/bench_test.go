package rds

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"urnic/internal/host/sockio"
	"urnic/internal/program/perf"
	"urnic/rnic"
)

// Each iteration of a benchmark is a round: RDS moves so much, and then what it is compared
// with moves as much, over a connection in the same process that is as old. The ratio is made for each
// round, and reported is the median.

// A contest collects the rounds of a benchmark.
type contest struct {
	ours, theirs []float64 // of each round, in the unit of the benchmark
	ratios       []float64
}

func (c *contest) round(ours, theirs float64) {
	c.ours, c.theirs = append(c.ours, ours), append(c.theirs, theirs)
	c.ratios = append(c.ratios, ours/theirs)
}

func (c *contest) report(b *testing.B, unit, baseline string) {
	b.ReportMetric(median(c.ours), unit)
	b.ReportMetric(median(c.theirs), baseline+"-"+unit)
	b.ReportMetric(median(c.ratios), "x"+baseline)
	b.ReportMetric(slices.Min(c.ratios), "least-x"+baseline)
	b.ReportMetric(slices.Max(c.ratios), "most-x"+baseline)
	b.ReportMetric(0, "ns/op") // which is that of a whole round
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

const (
	benchSize  = 64 << 10
	benchCount = 1024 // datagrams of a round
	smallSize  = 64
)

// BenchmarkStream sends datagrams of 64 KiB from one socket to another one. Over TCP, the
// baseline is a stream with writes of 64 KiB, which are read into buffers of 64 KiB; over iwarp it is
// what urnic perf measures: Sends of 64 KiB.
func BenchmarkStream(b *testing.B) {
	b.Run("tcp", func(b *testing.B) {
		from, to := benchSockets(b, transports["tcp"])
		raw := newRawStream(b)
		var c contest
		for b.Loop() {
			c.round(benchStream(b, from, to, benchSize, benchCount), raw.run(b, benchCount))
		}
		c.report(b, "MB/s", "TCP")
	})
	b.Run("iwarp", func(b *testing.B) {
		from, to := benchSockets(b, transports["iwarp"])
		raw := newRawSends(b)
		var c contest
		for b.Loop() {
			c.round(benchStream(b, from, to, benchSize, benchCount), raw.run(b, benchCount))
		}
		c.report(b, "MB/s", "perf")
	})
}

// benchSockets returns sockets of two nodes that are connected. Their buffers hold as much
// as those of TCP may on loopback.
func benchSockets(b *testing.B, transport func(testing.TB) Transport) (from, to *Socket) {
	b.Helper()
	ns := nodes(b, 2, transport, nil)
	var s [2]*Socket
	for i, n := range ns {
		var err error
		if s[i], err = n.Bind(0, SendBuffer(4<<20), ReceiveBuffer(4<<20)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range s { // both ways, so that the handshake is over
		benchStream(b, s[i], s[1-i], benchSize, 64)
	}
	return s[0], s[1]
}

// benchStream moves datagrams, and returns how many MB went in a second.
func benchStream(b *testing.B, from, to *Socket, size, count int) float64 {
	b.Helper()
	begun := time.Now()
	sent := make(chan error, 1)
	go func() {
		data := make([]byte, size)
		for i := range count {
			binary.BigEndian.PutUint64(data, uint64(i))
			if err := from.SendTo(b.Context(), data, to.Addr()); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	buf := make([]byte, size)
	for i := range count {
		n, _, err := to.RecvFrom(b.Context(), buf)
		if err != nil || n != size || binary.BigEndian.Uint64(buf) != uint64(i) {
			b.Fatalf("%d bytes came of datagram %d: %v", n, i, err)
		}
	}
	took := time.Since(begun)
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
	return float64(size) * float64(count) / 1e6 / took.Seconds()
}

// A rawStream is a connection of TCP.
type rawStream struct {
	from, to sockio.Stream
	in, out  []byte
}

func newRawStream(b *testing.B) *rawStream {
	x, y := rawConns(b)
	r := &rawStream{from: sockio.New(x), to: sockio.New(y), in: make([]byte, benchSize), out: make([]byte, benchSize)}
	r.run(b, 64)
	return r
}

func rawConns(b *testing.B) (x, y net.Conn) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.77.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if x, err = net.Dial("tcp", l.Addr().String()); err == nil {
		y, err = l.Accept()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x, y
}

// run moves as many bytes as so many datagrams have, and returns how many MB went in a second.
func (r *rawStream) run(b *testing.B, count int) float64 {
	b.Helper()
	begun := time.Now()
	sent := make(chan error, 1)
	go func() {
		for range count {
			pieces := [][]byte{r.out}
			for len(pieces[0]) > 0 {
				n, err := r.from.Writev(pieces, true)
				if err != nil {
					sent <- err
					return
				}
				pieces[0] = pieces[0][n:]
			}
		}
		sent <- nil
	}()
	get := func() []byte { return r.in }
	for left := count * benchSize; left > 0; {
		n, err := r.to.ReadInto(get, func() {})
		if err != nil {
			b.Fatal(err)
		}
		left -= n
	}
	took := time.Since(begun)
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
	return float64(benchSize) * float64(count) / 1e6 / took.Seconds()
}

// A rawSends is what urnic perf has in one process.
type rawSends struct {
	client  *rnic.Device
	address string
}

func newRawSends(b *testing.B) *rawSends {
	b.Helper()
	var devices [2]*rnic.Device
	for i := range devices {
		var err error
		if devices[i], err = rnic.Open(rnic.Config{}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { devices[i].Close() })
	}
	l, err := devices[0].Listen(b.Context(), "127.0.77.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	server := perf.Server{Device: devices[0]}
	go func() { done <- server.Serve(ctx, l) }()
	b.Cleanup(func() {
		stop()
		<-done
	})
	return &rawSends{devices[1], l.Addr().String()}
}

func (r *rawSends) run(b *testing.B, count int) float64 {
	b.Helper()
	o := perf.Options{Op: perf.OpSend, Test: perf.TestBandwidth, Sizes: []int{benchSize}, Iterations: uint64(count), BothSides: true}
	report, err := perf.Run(b.Context(), r.client, &perf.Segments{}, r.address, o)
	if err != nil {
		b.Fatal(err)
	}
	return report.Results[0].BytesPerSecond / 1e6
}

// BenchmarkRate sends datagrams of 64 bytes one way, beside UDP, of which those count that
// arrive.
func BenchmarkRate(b *testing.B) {
	for _, name := range []string{"tcp", "iwarp"} {
		b.Run(name, func(b *testing.B) {
			from, to := benchSockets(b, transports[name])
			var c contest
			for b.Loop() {
				const count = 50_000
				c.round(benchStream(b, from, to, smallSize, count)*1e6/smallSize, newUDP(b).rate(b, count))
			}
			c.report(b, "datagrams/s", "UDP")
		})
	}
}

// A udpPair is two sockets of UDP.
type udpPair struct{ x, y *net.UDPConn }

func newUDP(b *testing.B) *udpPair {
	b.Helper()
	var c [2]*net.UDPConn
	for i := range c {
		var err error
		if c[i], err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.77.1:0"))); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c[i].Close() })
	}
	return &udpPair{c[0], c[1]}
}

func (u *udpPair) rate(b *testing.B, count int) float64 {
	b.Helper()
	to := u.y.LocalAddr().(*net.UDPAddr).AddrPort()
	over := make(chan struct{})
	var sending sync.WaitGroup
	begun := time.Now()
	sending.Go(func() {
		data := make([]byte, smallSize)
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			if i == count {
				data = data[:1] // there are no more; that may be lost as well
			}
			if _, err := u.x.WriteToUDPAddrPort(data, to); err != nil {
				b.Error(err)
				return
			}
		}
	})
	buf := make([]byte, smallSize)
	got := 0
	for {
		n, _, err := u.y.ReadFromUDPAddrPort(buf)
		if err != nil {
			b.Fatal(err)
		}
		if n == 1 {
			break
		}
		got++
	}
	took := time.Since(begun)
	close(over)
	sending.Wait()
	return float64(got) / took.Seconds()
}

// BenchmarkRoundTrip sends a datagram of 64 bytes there and back, one at a time, beside UDP.
// The figures are of all rounds.
func BenchmarkRoundTrip(b *testing.B) {
	for _, name := range []string{"tcp", "iwarp"} {
		b.Run(name, func(b *testing.B) {
			from, to := benchSockets(b, transports[name])
			udp := newUDP(b)
			ours, theirs := hdrhistogram.New(1, 1e10, 3), hdrhistogram.New(1, 1e10, 3)
			data := make([]byte, smallSize)
			answering(b, func() error {
				n, peer, err := to.RecvFrom(b.Context(), data)
				if err != nil {
					return err
				}
				return to.SendTo(b.Context(), data[:n], peer)
			})
			theirData := make([]byte, smallSize)
			answering(b, func() error {
				n, peer, err := udp.y.ReadFromUDPAddrPort(theirData)
				if err != nil {
					return err
				}
				_, err = udp.y.WriteToUDPAddrPort(theirData[:n], peer)
				return err
			})
			mine := make([]byte, smallSize)
			peer := udp.y.LocalAddr().(*net.UDPAddr).AddrPort()
			const count = 2000
			for b.Loop() {
				timed(b, ours, count, func() error {
					if err := from.SendTo(b.Context(), mine, to.Addr()); err != nil {
						return err
					}
					_, _, err := from.RecvFrom(b.Context(), mine)
					return err
				})
				timed(b, theirs, count, func() error {
					if _, err := udp.x.WriteToUDPAddrPort(mine, peer); err != nil {
						return err
					}
					_, _, err := udp.x.ReadFromUDPAddrPort(mine)
					return err
				})
			}
			for _, h := range []struct {
				name string
				*hdrhistogram.Histogram
			}{{"", ours}, {"UDP-", theirs}} {
				for _, q := range []float64{50, 99, 99.9} {
					b.ReportMetric(float64(h.ValueAtQuantile(q))/1e3, fmt.Sprintf("%sp%v-µs", h.name, q))
				}
			}
			b.ReportMetric(float64(ours.ValueAtQuantile(50))/float64(theirs.ValueAtQuantile(50)), "xUDP")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// answering answers in a goroutine until there is an error.
func answering(b *testing.B, once func() error) {
	b.Helper()
	go func() {
		for once() == nil {
		}
	}()
}

func timed(b *testing.B, h *hdrhistogram.Histogram, count int, once func() error) {
	b.Helper()
	for range count {
		begun := time.Now()
		if err := once(); err != nil {
			b.Fatal(err)
		}
		if err := h.RecordValue(int64(time.Since(begun))); err != nil {
			b.Fatal(err)
		}
	}
}
