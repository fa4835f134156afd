package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"urnic/internal/test/simnet"
)

// transports are the streams of the benchmarks.
var transports = []struct {
	name string
	open func(b testing.TB) (x, y net.Conn)
}{
	{"tcp", func(b testing.TB) (x, y net.Conn) { return sockets(b, loopbacks[0]) }},
	{"simnet", func(testing.TB) (x, y net.Conn) { return simnet.Pipe(simnet.Options{Buffer: 1 << 20}) }},
}

// BenchmarkConn sends ULPDUs in one direction. It reports how its throughput
// compares with that of the bare stream, which is measured in the same run:
// writes of 256 KiB, reads of 128 KiB.
func BenchmarkConn(b *testing.B) {
	for _, tr := range transports {
		for _, size := range []int{64, 1442, 16 << 10, MaxMULPDU} {
			for _, crc := range []CRCPolicy{CRCPrefer, CRCOff} {
				b.Run(fmt.Sprintf("%s/ulpdu=%d/crc=%v", tr.name, size, crc != CRCOff), func(b *testing.B) {
					x, y := tr.open(b)
					ini, res := connect(b, x, y, Config{CRC: crc}, Config{CRC: crc})
					elapsed := carry(b, ini, res, size)
					x, y = tr.open(b)
					octets := min(b.N*size, 1<<30)
					raw := float64(octets) / bare(b, x, y, octets).Seconds()
					b.ReportMetric(float64(b.N)*float64(size)/elapsed.Seconds()/raw, "of-raw")
				})
			}
		}
	}
}

// carry sends b.N ULPDUs of a header and a stable payload.
func carry(b *testing.B, ini, res *Conn, size int) time.Duration {
	received := make(chan int)
	go func() {
		n := 0
		var err error
		place := each(func(u []byte, _ uint64) { n += len(u) })
		for err == nil {
			err = res.Receive(place)
		}
		if !errors.Is(err, io.EOF) {
			b.Error(err)
		}
		received <- n
	}()
	header := make([]byte, 14)
	payload := [][]byte{make([]byte, size-len(header))}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for {
			ok, err := ini.Post(header, payload, true)
			if err != nil {
				b.Fatal(err)
			}
			if ok {
				break
			}
			if _, err := ini.Flush(true); err != nil {
				b.Fatal(err)
			}
		}
	}
	elapsed := b.Elapsed()
	for done := false; !done; {
		var err error
		if done, err = ini.Flush(true); err != nil {
			b.Fatal(err)
		}
	}
	if err := ini.CloseWrite(); err != nil {
		b.Fatal(err)
	}
	if n := <-received; n != b.N*size {
		b.Errorf("%d octets of %d received", n, b.N*size)
	}
	return elapsed
}

// bare sends so many bytes over a stream without MPA.
func bare(b *testing.B, x, y net.Conn, octets int) time.Duration {
	defer x.Close()
	defer y.Close()
	start := time.Now()
	go func() {
		out := make([]byte, 256<<10)
		for left := octets; left > 0; left -= min(left, len(out)) {
			if _, err := x.Write(out[:min(left, len(out))]); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	in := make([]byte, 128<<10)
	for left := octets; left > 0; {
		n, err := y.Read(in)
		if err != nil {
			b.Fatal(err)
		}
		left -= n
	}
	return time.Since(start)
}

// BenchmarkPingPong sends one ULPDU to and fro.
func BenchmarkPingPong(b *testing.B) {
	for _, tr := range transports {
		b.Run(tr.name, func(b *testing.B) {
			x, y := tr.open(b)
			ini, res := connect(b, x, y, Config{}, Config{})
			go func() {
				for res.Receive(ignore) == nil {
					if err := say(res); err != nil {
						return
					}
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(say(ini), ini.Receive(ignore)); err != nil {
					b.Fatal(err)
				}
			}
			_ = ini.Close()
		})
	}
}

func say(c *Conn) error {
	if _, err := c.Post(hello, nil, true); err != nil {
		return err
	}
	_, err := c.Flush(true)
	return err
}

var hello = make([]byte, 64)

// BenchmarkStartup measures connections that are opened and closed at once.
func BenchmarkStartup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		x, y := simnet.Pipe(simnet.Options{})
		done := responds(context.Background(), y, Config{})
		c, err := Initiate(context.Background(), x, Config{})
		s := <-done
		if err != nil || s.err != nil {
			b.Fatal(err, s.err)
		}
		_ = c.Close()
		_ = s.conn.Close()
	}
}
