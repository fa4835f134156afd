package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// What a round over bare TCP does.
const (
	rawStream   = "stream"   // octets in one direction or both
	rawPingPong = "pingpong" // a message there, a message back
	rawConnect  = "connect"  // connections that are made and closed
)

// A rawRound is a round over bare TCP, on connections of its own.
type rawRound struct {
	Kind  string `json:"kind"`
	Conns int    `json:"conns,omitempty"`

	ToServer bool `json:"to_server,omitempty"` // the client sends
	ToClient bool `json:"to_client,omitempty"` // the server does
	Write    int  `json:"write,omitempty"`     // octets of each call that sends
	Read     int  `json:"read,omitempty"`      // octets of the buffer of each call that receives
	Warm     int  `json:"warm,omitempty"`      // octets that go before the clock runs

	Request  int  `json:"request,omitempty"`  // octets there
	Response int  `json:"response,omitempty"` // octets back
	Poll     Poll `json:"poll,omitempty"`

	Octets   uint64        `json:"octets,omitempty"` // each connection and direction; or
	Duration time.Duration `json:"duration,omitempty"`
}

// maxCall is how many octets a call of the baseline may move.
const maxCall = 16 << 20

// check refuses what is out of bounds.
func (r *rawRound) check(memory uint64) error {
	switch {
	case r.Kind != rawStream && r.Kind != rawPingPong && r.Kind != rawConnect:
		return fmt.Errorf("bare TCP of the unknown kind %q: use the same urnic on both sides", r.Kind)
	case r.Conns < 1 || r.Conns > MaxQPs, r.Duration < 0 || r.Duration > MaxDuration:
		return fmt.Errorf("%d connections for %v: say 1 to %d, for up to %v", r.Conns, r.Duration, MaxQPs, MaxDuration)
	case r.Kind == rawConnect && r.Conns > MaxConnecting:
		return errConnecting(r.Conns)
	case r.Kind == rawPingPong && (r.Request < 1 || r.Request > MaxSize || r.Response < 1 || r.Response > MaxSize || r.Conns != 1):
		return fmt.Errorf("a ping-pong of %d and %d octets: say 1 to %s", r.Request, r.Response, sizeText(MaxSize))
	case r.Kind == rawStream && (r.Write < 1 || r.Write > maxCall || r.Read < 1 || r.Read > maxCall || r.Warm < 0 || r.Warm > MaxSize):
		return fmt.Errorf("calls of %d and %d octets: say 1 to %s", r.Write, r.Read, sizeText(maxCall))
	}
	if need := r.memory(); need > memory {
		return fmt.Errorf("the baseline needs %d octets of memory, of which there may be %d: ask for less, or raise --max-memory", need, memory)
	}
	return nil
}

// memory returns how many octets a side takes.
func (r *rawRound) memory() uint64 {
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
	round *rawRound
	out   []byte
	in    []byte
	sends bool // this side sends
	recvs bool // the other one does
}

func newRawConn(c net.Conn, r *rawRound, client bool) (*rawConn, error) {
	t, is := c.(*net.TCPConn)
	if !is {
		return nil, errors.Join(fmt.Errorf("%v is no TCP connection", c.RemoteAddr()), c.Close())
	}
	rc := &rawConn{TCPConn: t, round: r, sends: r.ToServer, recvs: r.ToClient}
	if !client {
		rc.sends, rc.recvs = rc.recvs, rc.sends
	}
	return rc, nil
}

// warm moves the octets that are not counted: the client's, then the server's.
func (c *rawConn) warm(client bool) error {
	c.out, c.in = make([]byte, c.round.Write), make([]byte, c.round.Read)
	fill(c.out, 1)                                   // memory that was never written to would be faster than any other
	buf := make([]byte, min(c.round.Warm, fullCall)) // small calls would take long
	push := func() error {
		for left := c.round.Warm; left > 0; {
			n, err := c.Write(buf[:min(left, len(buf))])
			if err != nil {
				return err
			}
			left -= n
		}
		return nil
	}
	pull := func() error {
		for left := c.round.Warm; left > 0; {
			n, err := c.Read(buf[:min(left, len(buf))])
			if err != nil {
				return err
			}
			left -= n
		}
		return nil
	}
	steps := []func() error{}
	if c.sends {
		steps = append(steps, push)
	}
	if c.recvs {
		steps = append(steps, pull)
	}
	if len(steps) == 2 && !client {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
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

// stream moves the octets in both directions, as far as they are wanted. The
// end of the server's stream tells the client that all has arrived.
func (c *rawConn) stream(client bool) (sent, received uint64, err error) {
	finish := func() error { return c.CloseWrite() }
	if !c.sends || !c.recvs { // no goroutine is needed
		if client {
			sent, err = c.push()
			err = errors.Join(err, finish())
			n, failed := c.pull()
			return sent, n, errors.Join(err, failed)
		}
		if c.sends {
			sent, err = c.push()
		} else {
			received, err = c.pull()
		}
		return sent, received, errors.Join(err, finish())
	}
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		sent, failed = c.push()
		if client {
			failed = errors.Join(failed, finish())
		}
	})
	received, err = c.pull()
	wg.Wait()
	if !client {
		failed = errors.Join(failed, finish())
	}
	return sent, received, errors.Join(err, failed)
}

// push sends until the round is over.
func (c *rawConn) push() (sent uint64, err error) {
	if !c.sends {
		return 0, nil
	}
	r := c.round
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

// pull receives until the other side has ended its stream.
func (c *rawConn) pull() (received uint64, err error) {
	for {
		n, err := c.Read(c.in)
		received += uint64(n)
		if errors.Is(err, io.EOF) {
			return received, nil
		}
		if err != nil {
			return received, err
		}
	}
}

// play takes the times of round trips.
func (c *rawConn) play(ctx context.Context, iterations uint64, d time.Duration, h *histogram) (err error) {
	request, response := make([]byte, c.round.Request), make([]byte, c.round.Response)
	trip := func() error {
		if _, err := c.Write(request); err != nil {
			return err
		}
		_, err := io.ReadFull(c, response)
		return err
	}
	loop := func() error {
		last := time.Now()
		deadline := last.Add(d)
		for count := uint64(0); iterations == 0 || count < iterations; count++ {
			if err := trip(); err != nil {
				return err
			}
			now := time.Now()
			h.record(now.Sub(last))
			last = now
			if iterations == 0 && !now.Before(deadline) {
				return nil
			}
		}
		return nil
	}
	if c.round.Poll != PollBusy {
		err = loop()
	} else {
		err = spinning(ctx, c.TCPConn, func(write, read func([]byte) error) error {
			trip = func() error {
				if err := write(request); err != nil {
					return err
				}
				return read(response)
			}
			return loop()
		})
	}
	return err
}

// answer answers each request until there are no more.
func (c *rawConn) answer(ctx context.Context) error {
	request, response := make([]byte, c.round.Request), make([]byte, c.round.Response)
	if c.round.Poll == PollBusy {
		err := spinning(ctx, c.TCPConn, func(write, read func([]byte) error) error {
			for {
				if err := read(request); err != nil {
					return err
				}
				if err := write(response); err != nil {
					return err
				}
			}
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	for {
		if _, err := io.ReadFull(c, request); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := c.Write(response); err != nil {
			return err
		}
	}
}
