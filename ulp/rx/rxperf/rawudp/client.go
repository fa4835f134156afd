package rawudp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxperf"
)

// Options say what a run does.
type Options struct {
	Command  rxperf.Command // Send, Receive, or RPC for datagrams there and back
	Size     int            // bytes of a datagram: MinSize to MaxSize
	Parallel int            // of RPC: datagrams outstanding, each with a socket of its own: 1 if it is 0

	// A run ends when so many datagrams have come, or after a time.
	Datagrams uint64
	Duration  time.Duration
}

// A Result says what has come of a run.
type Result struct {
	Datagrams uint64 // that were received, by whichever side receives
	Bytes     uint64
	Lost      uint64 // that were sent, and did not come
	Seconds   float64
	Latency   *rxperf.Latency // of RPC
}

// PerSecond is how many datagrams came in a second.
func (r *Result) PerSecond() float64 { return rate(r.Datagrams, r.Seconds) }

// BytesPerSecond is how many bytes came in a second.
func (r *Result) BytesPerSecond() float64 { return rate(r.Bytes, r.Seconds) }

func rate(n uint64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// patience is how long a datagram is waited for before it counts as lost.
const patience = 200 * time.Millisecond

// maxSilence is how many times in a row nothing may come before a run fails.
const maxSilence = 25

var errSilent = errors.New("rawudp: the server's UDP port does not answer: does a firewall let only Rx through?")

// admission is what the server's Rx service tells.
type admission struct {
	addr  netip.AddrPort
	token uint64
}

// A Client measures against one server.
type Client struct {
	endpoint rx.Endpoint
	server   netip.AddrPort
	dial     rx.DialConfig
}

// NewClient returns a client that asks for admission at an Rx endpoint.
func NewClient(e rx.Endpoint, server netip.AddrPort, dial rx.DialConfig) *Client {
	return &Client{e, server, dial}
}

// admit asks for a token.
func (c *Client) admit(ctx context.Context) (a admission, err error) {
	conn, err := c.endpoint.Dial(ctx, c.server, ServiceID, c.dial)
	if err != nil {
		return a, err
	}
	defer conn.Close() //nolint:errcheck // the answer is there, or an error
	call, err := conn.Begin(ctx)
	if err != nil {
		return a, err
	}
	defer call.Close() //nolint:errcheck // the same
	if err := call.CloseWrite(); err != nil {
		return a, err
	}
	b, err := io.ReadAll(io.LimitReader(call, 13))
	switch {
	case err != nil:
		return a, err
	case len(b) != 12 || binary.BigEndian.Uint32(b) > 65535:
		return a, fmt.Errorf("rawudp: the server tells no port and token, but %x", b)
	}
	a.addr = netip.AddrPortFrom(c.server.Addr(), uint16(binary.BigEndian.Uint32(b)))
	a.token = binary.BigEndian.Uint64(b[4:])
	return a, nil
}

// Run measures. If the context ends, the result is that of what was done.
func (c *Client) Run(ctx context.Context, o Options) (*Result, error) {
	if o.Size < MinSize || o.Size > MaxSize {
		return nil, fmt.Errorf("rawudp: datagrams of %d bytes: they have %d to %d", o.Size, MinSize, MaxSize)
	}
	if o.Datagrams == 0 && o.Duration <= 0 {
		return nil, errors.New("rawudp: a run has to end: give datagrams or a duration")
	}
	tasks := 1
	if o.Command == rxperf.RPC {
		tasks = max(o.Parallel, 1)
	}
	flows := make([]*flow, tasks)
	defer func() {
		for _, f := range flows {
			if f != nil {
				_ = f.conn.Close() // nothing is lost with it
			}
		}
	}()
	for i := range flows {
		a, err := c.admit(ctx)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "udp", a.addr.String())
		if err != nil {
			return nil, fmt.Errorf("rawudp: %w", err)
		}
		udp := conn.(*net.UDPConn)
		setBuffers(udp)
		flows[i] = &flow{o: &o, conn: udp, token: a.token, out: make([]byte, o.Size), in: make([]byte, MaxSize)}
		flows[i].most = (o.Datagrams + uint64(tasks) - 1) / uint64(tasks)
	}
	return measure(ctx, &o, flows)
}

func measure(ctx context.Context, o *Options, flows []*flow) (*Result, error) {
	var w sync.WaitGroup
	errs := make([]error, len(flows))
	begin := time.Now()
	for i, f := range flows {
		f.begin, f.latency = begin, hdrhistogram.New(1, int64(time.Minute), 3)
		w.Go(func() { errs[i] = f.run(ctx) })
	}
	w.Wait()
	r := &Result{Seconds: time.Since(begin).Seconds()}
	for i, f := range flows {
		r.Datagrams += f.came
		r.Bytes += f.bytes
		r.Lost += f.lost
		if i > 0 {
			flows[0].latency.Merge(f.latency)
		}
	}
	if o.Command == rxperf.RPC {
		r.Latency = rxperf.NewLatency(flows[0].latency)
	}
	return r, errors.Join(errs...)
}

// A flow is a socket and what goes over it.
type flow struct {
	o       *Options
	conn    *net.UDPConn
	token   uint64
	out, in []byte
	most    uint64 // datagrams; 0: no bound
	begin   time.Time
	latency *hdrhistogram.Histogram

	came, bytes, lost uint64
}

func (f *flow) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = f.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := errors.New("rawudp: unknown command")
	switch f.o.Command {
	case rxperf.RPC:
		err = f.echo(ctx)
	case rxperf.Send:
		err = f.send(ctx)
	case rxperf.Receive:
		err = f.receive(ctx)
	case rxperf.File:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (f *flow) over() bool {
	return f.most > 0 && f.came >= f.most || f.o.Duration > 0 && time.Since(f.begin) >= f.o.Duration
}

func (f *flow) write(k kind, number uint32, amount uint64, size int) error {
	(&packet{f.token, k, number, amount}).put(f.out)
	_, err := f.conn.Write(f.out[:size])
	return err
}

// read returns the next datagram of a kind, or false if none came in time.
func (f *flow) read(ctx context.Context, want kind) (p packet, n int, ok bool, err error) {
	if err := f.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return p, 0, false, err
	}
	if ctx.Err() != nil {
		return p, 0, false, context.Cause(ctx)
	}
	for {
		n, err := f.conn.Read(f.in)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return p, 0, false, nil
		}
		if err != nil {
			return p, 0, false, err
		}
		if p, ok := parse(f.in[:n]); ok && p.token == f.token && p.kind == want {
			return p, n, true, nil
		}
	}
}

// echo sends one datagram after the other, each when the one before has come back.
func (f *flow) echo(ctx context.Context) error {
	silent := 0
	for number := uint32(1); !f.over(); number++ {
		from := time.Now()
		if err := f.write(echo, number, 0, f.o.Size); err != nil {
			return err
		}
		for {
			p, n, ok, err := f.read(ctx, echo)
			if err != nil {
				return err
			}
			if !ok {
				f.lost++
				if silent++; silent == maxSilence {
					return errSilent
				}
				break
			}
			if p.number != number {
				continue // of one that was given up
			}
			_ = f.latency.RecordValue(int64(min(max(time.Since(from), 1), time.Minute))) // which it has room for
			f.came++
			f.bytes += uint64(n)
			silent = 0
			break
		}
	}
	return nil
}

// send sends a stream, up to a window of datagrams ahead of what the server has counted.
func (f *flow) send(ctx context.Context) error {
	var sent, counted uint32
	silent := 0
	window := window(f.o.Size)
	for !f.over() {
		for sent-counted < window {
			sent++
			ask := uint64(0)
			if sent%(window/4) == 0 || sent-counted == window {
				ask = 1 // in time for the next ones, or else nothing more goes
			}
			if err := f.write(data, sent, ask, f.o.Size); err != nil {
				return err
			}
		}
		p, _, ok, err := f.read(ctx, count)
		switch {
		case err != nil:
			return err
		case !ok: // what is outstanding is lost
			if silent++; silent == maxSilence {
				return errSilent
			}
			counted = sent
		default:
			silent = 0
			if d := p.number - counted; d <= sent-counted {
				counted = p.number
			}
			f.bytes = max(f.bytes, p.amount)
			f.came = f.bytes / uint64(f.o.Size)
		}
	}
	f.lost = uint64(counted) - min(f.came, uint64(counted))
	return nil
}

// receive has the server send, up to a window of datagrams beyond what has come.
func (f *flow) receive(ctx context.Context) error {
	var last, pulled uint32
	silent := 0
	window := window(f.o.Size)
	for !f.over() {
		if pulled-last <= window-window/4 {
			pulled = last + window
			if err := f.pull(pulled); err != nil {
				return err
			}
		}
		p, n, ok, err := f.read(ctx, data)
		switch {
		case err != nil:
			return err
		case !ok: // the pull is lost, or what it has made come
			if silent++; silent == maxSilence {
				return errSilent
			}
			last = pulled // as if all had come
		default:
			silent = 0
			f.came++
			f.bytes += uint64(n)
			last = max(last, p.number)
			f.lost = uint64(last) - min(f.came, uint64(last))
		}
	}
	return nil
}

// pull allows the server to send up to a number.
func (f *flow) pull(until uint32) error {
	(&packet{f.token, pull, until, uint64(f.o.Size)}).put(f.out)
	_, err := f.conn.Write(f.out[:headLen])
	return err
}
