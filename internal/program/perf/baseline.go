package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"urnic/internal/host/plural"
)

// What a round over bare TCP does.
const (
	rawStream   = "stream"   // bytes in one direction or both
	rawPingPong = "pingpong" // a message there, a message back
	rawConnect  = "connect"  // connections that are made and closed
)

// A rawSetup says what connections over bare TCP a case has, and what they do. They
// are as old as its queue pairs: both are made at the same time, and kept for all
// rounds.
type rawSetup struct {
	Kind  string `json:"kind"`
	Conns int    `json:"conns,omitempty"`

	ToServer bool `json:"to_server,omitempty"` // the client sends
	ToClient bool `json:"to_client,omitempty"` // the server does
	Write    int  `json:"write,omitempty"`     // bytes of each call that sends
	Read     int  `json:"read,omitempty"`      // bytes of the buffer of each call that receives

	Request  int  `json:"request,omitempty"`  // bytes there
	Response int  `json:"response,omitempty"` // bytes back
	Poll     Poll `json:"poll,omitempty"`
}

// A rawRound is a round on those connections.
type rawRound struct {
	Set      int           `json:"set"`              // which connections: their number in the order of opening
	Octets   uint64        `json:"octets,omitempty"` // each connection and direction; or
	Duration time.Duration `json:"duration,omitempty"`
	// End is what each side sends behind the last byte of a stream: random, so that it
	// is nothing else.
	End []byte `json:"end,omitempty"`
}

// endLen is how many bytes rawRound.End has.
const endLen = 16

// maxRawSets is how many sets of connections a session may have.
const maxRawSets = 4

// check refuses rounds that have no end.
func (r *rawRound) check(kind string) error {
	switch {
	case r.Duration < 0 || r.Duration > MaxDuration:
		return fmt.Errorf("a round of %v: must be up to %v", r.Duration, MaxDuration)
	case kind == rawStream && (r.Octets == 0 && r.Duration == 0 || len(r.End) != endLen):
		return errors.New("a stream without an end: use the same urnic on both sides")
	}
	return nil
}

// maxCall is how many bytes a call of the baseline may move.
const maxCall = 16 << 20

// check refuses what is out of bounds.
func (r *rawSetup) check(memory uint64) error {
	switch {
	case r.Kind != rawStream && r.Kind != rawPingPong && r.Kind != rawConnect:
		return fmt.Errorf("bare TCP of the unknown kind %q: use the same urnic on both sides", r.Kind)
	case r.Conns < 1 || r.Conns > MaxQPs:
		return fmt.Errorf("%s: must be 1 to %d", plural.Count(r.Conns, "connection"), MaxQPs)
	case r.Kind == rawConnect && r.Conns > MaxConnecting:
		return errConnecting(r.Conns)
	case r.Kind == rawPingPong && (r.Request < 1 || r.Request > MaxSize || r.Response < 1 || r.Response > MaxSize || r.Conns != 1):
		return fmt.Errorf("a ping-pong of %d and %s: must be 1 to %s", r.Request, plural.Count(r.Response, "byte"), sizeText(MaxSize))
	case r.Kind == rawStream && (r.Write < 1 || r.Write > maxCall || r.Read < 1 || r.Read > maxCall):
		return fmt.Errorf("calls of %d and %s: must be 1 to %s", r.Write, plural.Count(r.Read, "byte"), sizeText(maxCall))
	case r.Kind == rawStream && !r.ToServer && !r.ToClient:
		return errors.New("a stream in no direction: use the same urnic on both sides")
	}
	if need := r.memory(); need > memory {
		return fmt.Errorf("the baseline needs %s of memory, of which there may be %d: ask for less, or raise --max-memory", plural.Count(need, "byte"), memory)
	}
	return nil
}

// memory returns how many bytes a side takes.
func (r *rawSetup) memory() uint64 {
	switch r.Kind {
	case rawStream:
		return uint64(r.Conns) * (uint64(r.Write) + uint64(r.Read))
	case rawPingPong:
		return uint64(r.Request) + uint64(r.Response)
	}
	return 0
}

// A rawConn is a connection of the baseline with its buffers.
type rawConn struct {
	*net.TCPConn
	setup *rawSetup
	out   []byte
	in    []byte
	sends bool // this side sends
	recvs bool // the other one does
}

func newRawConn(c net.Conn, r *rawSetup, client bool) (*rawConn, error) {
	t, is := c.(*net.TCPConn)
	if !is {
		return nil, errors.Join(fmt.Errorf("%v is no TCP connection", c.RemoteAddr()), c.Close())
	}
	rc := &rawConn{TCPConn: t, setup: r, sends: r.ToServer, recvs: r.ToClient}
	if !client {
		rc.sends, rc.recvs = rc.recvs, rc.sends
	}
	if r.Kind == rawStream {
		rc.out, rc.in = make([]byte, r.Write), make([]byte, max(r.Read, endLen))
		fill(rc.out, 1) // memory that was never written to would be faster than any other
	} else {
		rc.out, rc.in = make([]byte, r.Request), make([]byte, r.Response)
		if !client {
			rc.out, rc.in = rc.in, rc.out
		}
	}
	return rc, nil
}

// begin has the server begin when the client does.
func (c *rawConn) begin(client bool) error {
	b := []byte{0}
	if client {
		_, err := c.Write(b)
		return err
	}
	_, err := io.ReadFull(c, b)
	return err
}

// stream moves the bytes of a round. The client is done when all has arrived on both
// sides: the server ends its stream only when it has received all of the client's.
func (c *rawConn) stream(client bool, r *rawRound) (sent, received uint64, err error) {
	if err := c.begin(client); err != nil {
		return 0, 0, err
	}
	end := func() error {
		_, err := c.Write(r.End)
		return err
	}
	push := func() (failed error) {
		if sent, failed = c.push(r); failed == nil && client {
			failed = end()
		}
		return failed
	}
	var failed error
	switch {
	case c.sends && c.recvs:
		var wg sync.WaitGroup
		wg.Go(func() {
			if failed = push(); failed != nil {
				_ = c.Close() // so that pull ends
			}
		})
		received, err = c.pull(r)
		wg.Wait()
	case c.sends:
		if failed = push(); failed == nil && client {
			received, err = c.pull(r)
		}
	default:
		received, err = c.pull(r)
	}
	if err = errors.Join(failed, err); err == nil && !client {
		err = end()
	}
	return sent, received, err
}

// push sends until the round is over.
func (c *rawConn) push(r *rawRound) (sent uint64, err error) {
	deadline := time.Now().Add(r.Duration)
	look := uint64(1) // something is sent in any case
	for r.Octets == 0 || sent < r.Octets {
		n := len(c.out)
		if r.Octets > 0 {
			n = int(min(uint64(n), r.Octets-sent))
		} else if sent >= look {
			if !time.Now().Before(deadline) {
				break
			}
			look = sent + min(256<<10, 256*uint64(len(c.out)))
		}
		n, err := c.Write(c.out[:n])
		sent += uint64(n)
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// pull receives until the end of the other side's stream, and returns how many bytes
// came before that.
func (c *rawConn) pull(r *rawRound) (received uint64, err error) {
	var last [endLen]byte // the last bytes that came
	for {
		n, err := c.Read(c.in[:c.setup.Read])
		received += uint64(n)
		if n >= endLen {
			copy(last[:], c.in[n-endLen:n])
		} else if n > 0 {
			copy(last[:], last[n:])
			copy(last[endLen-n:], c.in[:n])
		}
		if received >= endLen && string(last[:]) == string(r.End) {
			return received - endLen, nil
		}
		if errors.Is(err, io.EOF) {
			err = errClosed
		}
		if err != nil {
			return received, err
		}
	}
}

// The first byte of a request says whether the round continues.
const (
	rawMore = iota
	rawLast
)

// play takes the times of round trips, and has one more tell the server that those
// were all.
func (c *rawConn) play(ctx context.Context, iterations uint64, d time.Duration, h *histogram) (count uint64, err error) {
	loop := func(write, read func([]byte) error) error {
		c.out[0] = rawMore
		last := time.Now()
		deadline := last.Add(d)
		for iterations == 0 || count < iterations {
			if err := write(c.out); err != nil {
				return err
			}
			if err := read(c.in); err != nil {
				return err
			}
			now := time.Now()
			h.record(now.Sub(last))
			last = now
			count++
			if iterations == 0 && !now.Before(deadline) {
				break
			}
		}
		return nil
	}
	err = c.calls(ctx, loop)
	return count, err
}

// done tells the server that a round is over.
func (c *rawConn) done(ctx context.Context) error {
	return c.calls(ctx, func(write, read func([]byte) error) error {
		c.out[0] = rawLast
		if err := write(c.out); err != nil {
			return err
		}
		return read(c.in)
	})
}

// calls has f use the calls for whole messages that suit the way to poll.
func (c *rawConn) calls(ctx context.Context, f func(write, read func([]byte) error) error) error {
	if c.setup.Poll == PollBusy {
		return spinning(ctx, c.TCPConn, f)
	}
	return f(
		func(b []byte) error {
			_, err := c.Write(b)
			return err
		},
		func(b []byte) error {
			_, err := io.ReadFull(c, b)
			return err
		})
}

// answer answers each request of a round, and counts those that the client takes the
// times of.
func (c *rawConn) answer(ctx context.Context) (count uint64, err error) {
	err = c.calls(ctx, func(write, read func([]byte) error) error {
		for {
			if err := read(c.in); err != nil {
				return err
			}
			if err := write(c.out); err != nil {
				return err
			}
			if c.in[0] == rawLast {
				return nil
			}
			count++
		}
	})
	return count, err
}
