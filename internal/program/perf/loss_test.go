package perf

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	"urnic/rnic"
)

// A loser is a network whose connections lose RDMA Writes that carry data, all but those
// that it is to keep. What it loses are whole FPDUs, which nothing below the test misses: tagged
// messages have no numbers.
type loser struct {
	Segments
	keep func(n int) bool

	mu   sync.Mutex
	n    int // Writes that were there
	lost int
}

func (l *loser) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := l.Segments.Dial(ctx, address)
	return &losingConn{Conn: c, loser: l}, err
}

type losingConn struct {
	net.Conn
	loser   *loser
	started bool // start-up is over
	buf     []byte
}

func (c *losingConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

const (
	requestHeader = 20 // of MPA, RFC 5044 §7.1.1
	taggedHeader  = 14 // RFC 5041 §4.3
	tagged        = 0x80
	opcodeMask    = 0x0f
	opcodeWrite   = 0 // RFC 5040 §4.3
)

func (c *losingConn) Write(b []byte) (int, error) {
	c.buf = append(c.buf, b...)
	var out []byte
	for {
		n, lose := c.next()
		if n == 0 {
			break
		}
		if !lose {
			out = append(out, c.buf[:n]...)
		}
		c.buf = c.buf[n:]
	}
	if len(out) > 0 {
		if _, err := c.Conn.Write(out); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// next returns the length of what lies first in the buffer, if it is whole, and whether
// it is to be lost.
func (c *losingConn) next() (n int, lose bool) {
	switch {
	case !c.started:
		if len(c.buf) < requestHeader {
			return 0, false
		}
		n = requestHeader + int(binary.BigEndian.Uint16(c.buf[requestHeader-2:]))
	case len(c.buf) < 2:
		return 0, false
	default:
		n = (2+int(binary.BigEndian.Uint16(c.buf))+3)&^3 + 4
	}
	if len(c.buf) < n {
		return 0, false
	}
	if !c.started {
		c.started = true
		return n, false
	}
	length := int(binary.BigEndian.Uint16(c.buf))
	if c.buf[2]&tagged == 0 || c.buf[3]&opcodeMask != opcodeWrite || length <= taggedHeader {
		return n, false
	}
	l := c.loser
	l.mu.Lock()
	defer l.mu.Unlock()
	lose = !l.keep(l.n)
	l.n++
	if lose {
		l.lost++
	}
	return n, lose
}

// A run of which RDMA Writes were lost fails: if one alone has arrived, whichever that
// is, or if one alone is missing, though others have been written over its place since.
func TestLostWritesAreFound(t *testing.T) {
	const writes = 40
	only := func(which int) func(int) bool { return func(n int) bool { return n%writes == which } }
	but := func(which int) func(int) bool { return func(n int) bool { return n != which } }
	for name, tc := range map[string]struct {
		o    Options
		keep func(n int) bool
	}{
		"all but the first":       {Options{}, only(0)},
		"all but one":             {Options{}, only(writes / 2)},
		"all but the last":        {Options{}, only(writes - 1)},
		"all":                     {Options{}, only(-1)},
		"one":                     {Options{}, but(7)},
		"one that is long":        {Options{Sizes: []int{20_000}, MULPDU: 30_000}, but(7)},
		"all but a long one":      {Options{Sizes: []int{20_000}, MULPDU: 30_000}, only(writes - 1)},
		"all but one byte":        {Options{Sizes: []int{1}}, only(writes - 1)},
		"one byte":                {Options{Sizes: []int{1}}, but(3)},
		"one of very many":        {Options{Iterations: 17_000}, but(5000)},
		"one of very many long":   {Options{Iterations: 4_200, Sizes: []int{9000}, MULPDU: 30_000}, but(4000)},
		"with immediate data":     {Options{Op: OpWriteImm}, only(writes - 1)},
		"one with immediate data": {Options{Op: OpWriteImm}, but(9)},
		"in busy polling":         {Options{Poll: PollBusy}, only(writes - 1)},
		"in both directions":      {Options{Bidir: true}, only(writes - 1)},
		"of several queue pairs":  {Options{QPs: []int{3}}, only(writes - 1)},
		"in a ping-pong":          {Options{Test: TestLatency}, only(writes - 1)},
		"one in a ping-pong":      {Options{Test: TestLatency}, but(5)},
		"at a rate":               {Options{Test: TestLatency, Rate: 1e6}, but(5)},
		"all at a rate but one":   {Options{Test: TestLatency, Rate: 1e6, Depth: 4}, only(writes - 1)},
		"when they scale":         {Options{Test: TestScale, QPs: []int{2}}, only(writes - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, &Server{})
			network := &loser{keep: tc.keep}
			o := tc.o
			o.NoCRC = true
			def(&o.Iterations, writes)
			if o.Sizes == nil {
				o.Sizes = []int{64}
			}
			_, err := Run(t.Context(), open(t, rnic.Config{Network: network}), nil, address, o)
			if network.lost == 0 {
				t.Fatalf("of %d Writes none was lost", network.n)
			}
			if err == nil || !strings.Contains(err.Error(), "the data are damaged: message") && !strings.Contains(err.Error(), "did not arrive") {
				t.Errorf("%d of %d Writes were lost: %v", network.lost, network.n, err)
			}
		})
	}
}
