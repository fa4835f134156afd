package perf

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkTCPConnections shows what a connection of bare TCP costs that does what start-up of MPA and a
// graceful end take: a request, a reply, and the end of each half (RFC 5044 §7.1.2, §7.2). No
// queue pair can be connected and disconnected for less. The metric ratio is its rate to that of
// connections that are made and closed only, which are the baseline of "perf --test connect".
func BenchmarkTCPConnections(b *testing.B) {
	const loops, batch = 4, 2000
	var plain, polite time.Duration
	for b.Loop() {
		plain += makeTCP(b, loops, batch, func(c *net.TCPConn) error { return c.Close() }, func(c *net.TCPConn) error { return c.Close() })
		polite += makeTCP(b, loops, batch, askTCP, answerTCP)
	}
	b.ReportMetric(float64(batch*b.N)/plain.Seconds(), "plain/s")
	b.ReportMetric(float64(batch*b.N)/polite.Seconds(), "polite/s")
	b.ReportMetric(plain.Seconds()/polite.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op") // of both together: says nothing
}

// askTCP is the client's part of a connection with a request and a reply.
func askTCP(c *net.TCPConn) error {
	var frame [24]byte
	_, err := c.Write(frame[:])
	if err == nil {
		_, err = io.ReadFull(c, frame[:])
	}
	return errors.Join(err, c.CloseWrite(), drainTCP(c))
}

// answerTCP is the server's.
func answerTCP(c *net.TCPConn) error {
	var frame [24]byte
	_, err := io.ReadFull(c, frame[:])
	if err == nil {
		_, err = c.Write(frame[:])
	}
	return errors.Join(err, c.CloseWrite(), drainTCP(c))
}

// drainTCP waits for the end of the peer's half, and closes.
func drainTCP(c *net.TCPConn) error {
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return errors.Join(err, c.Close())
	}
	return c.Close()
}

// makeTCP makes n connections over loopback, as many at a time as there are loops, and returns how long it took.
func makeTCP(b *testing.B, loops, n int, client, server func(*net.TCPConn) error) time.Duration {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var accepting, dialling sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	begun := time.Now()
	for range loops {
		accepting.Go(func() {
			for {
				c, err := l.Accept()
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil {
					err = server(c.(*net.TCPConn))
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
		dialling.Go(func() {
			var d net.Dialer
			for left.Add(-1) >= 0 {
				c, err := d.DialContext(context.Background(), "tcp", l.Addr().String())
				if err == nil {
					err = client(c.(*net.TCPConn))
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	dialling.Wait()
	took := time.Since(begun)
	if err := l.Close(); err != nil {
		b.Error(err)
	}
	accepting.Wait()
	return took
}
