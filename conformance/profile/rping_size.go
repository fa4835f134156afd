package profile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// rpingSize is how many bytes rping's buffers have, if nobody says otherwise, and
// the tester's buffer of which rping -s is told.
const rpingSize = 64

// A room is what is known of the buffer of rping -s.
type room struct {
	size int   // bytes that can be used, from its first one on
	end  error // why it is not known that the buffer ends behind them, or nil
	err  error // why there is none
}

// errUnknownEnd says why cases about the end of the buffer tell nothing.
var errUnknownEnd = errors.New("where the buffer of rping -s ends is not known: " +
	"start it with -S 64, or say with --rping-size what its -S is")

// learn finds out how large the buffer of rping -s is, if it has not done so before.
// It returns an error if the target can't be reached.
//
// urnic's rping -s advertises its buffer in its first message. rdma-core's doesn't. So
// the tester tells it of 64 bytes, its default, which it has to read into its buffer,
// and then of 65, which it must not be able to. If it can, it was started with another
// size, or does not find the end of its own buffer: cases about the end can't tell.
func (r *Rping) learn(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.target == "" || r.room != nil {
		return nil
	}
	if r.size > 0 {
		r.room = &room{size: r.size}
		return nil
	}
	found, err := r.ask(ctx)
	if err != nil {
		return err
	}
	r.room = &found
	return nil
}

// ask does the rounds that learn needs.
func (r *Rping) ask(ctx context.Context) (room, error) {
	first, err := r.try(ctx, rpingSize)
	switch {
	case err != nil:
		return room{}, err
	case first.err != nil:
		return room{err: fmt.Errorf("rping -s does not read %d octets into its buffer: start it with -S %[1]d, or a larger one: %w", rpingSize, first.err)}, nil
	case first.advertised > 0:
		return room{size: first.advertised}, nil
	}
	second, err := r.try(ctx, rpingSize+1)
	switch {
	case err != nil:
		return room{}, err
	case second.refused():
		return room{size: rpingSize}, nil
	}
	return room{size: rpingSize, end: errUnknownEnd}, nil
}

// A trial is the first half of a round of rping.
type trial struct {
	sink       wire.ReadHeader
	advertised int   // bytes of the buffer of rping -s, if it has said so
	err        error // what went wrong in it
}

// refused reports whether rping -s has ended the connection.
func (t trial) refused() bool {
	var end *wire.EndError
	return errors.As(t.err, &end) || errors.Is(t.err, errTerminated)
}

var errTerminated = errors.New("it sends a Terminate")

// settling is how long to wait after start-up: Linux siw may lose an FPDU that comes at
// once.
const settling = 20 * time.Millisecond

// try connects, tells rping -s of n bytes, and lets it read them.
func (r *Rping) try(ctx context.Context, n uint32) (t trial, err error) {
	session := rawSession{raw: &r.Raw}
	nc, err := session.Dial(ctx, conformance.Setup{})
	if err != nil {
		return trial{}, err
	}
	conn := wire.NewConn(nc, wire.NewTape(), nil)
	defer func() { err = errors.Join(err, conn.Close()) }()
	// A run that is interrupted waits for nothing more. A limit of time is that of each answer.
	interrupted := func() bool { return errors.Is(ctx.Err(), context.Canceled) }
	defer context.AfterFunc(ctx, func() {
		if interrupted() {
			_ = nc.Close() // which the reader sees as an end
		}
	})()
	defer func() {
		if interrupted() {
			t, err = trial{}, context.Cause(ctx)
		}
	}()
	request := conformance.RequestFor(conformance.Setup{})
	if err := conn.SendFrame(request, ""); err != nil {
		return trial{err: err}, nil
	}
	reply, err := conn.ReadFrame(r.timeout)
	if err != nil {
		return trial{err: err}, nil
	}
	if reply.Flags&wire.FlagR != 0 {
		return trial{err: errors.New("it rejects an ordinary Request")}, nil
	}
	conn.Operate(reply.Flags&wire.FlagM != 0, false, true)
	select {
	case <-time.After(settling):
	case <-ctx.Done():
		return trial{}, context.Cause(ctx)
	}
	t.sink, t.advertised, t.err = firstHalf(&tester{conn: conn}, n, r.timeout)
	return t, nil
}

// A link is what a round of rping needs of a connection.
type link interface {
	Post(segments ...wire.Segment)
	Next(timeout time.Duration) (wire.Arrival, error)
}

// A tester is a link without a case.
type tester struct {
	conn *wire.Conn
	msn  uint32 // of the last message on queue 0
}

func (t *tester) Next(timeout time.Duration) (wire.Arrival, error) { return t.conn.Next(timeout) }

func (t *tester) Post(segments ...wire.Segment) {
	for _, s := range segments {
		if !s.Tagged {
			t.msn++
			s.MSN = t.msn
		}
		_ = t.conn.SendSegment(s, wire.Flaw{}) // what comes back tells
	}
}

// firstHalf tells rping -s of n bytes, and lets it read them. It returns the sink of its
// Read, and how many bytes that has in all if rping -s says so in the message by which it
// continues.
func firstHalf(l link, n uint32, timeout time.Duration) (sink wire.ReadHeader, advertised int, err error) {
	ours := advert{to: ourTO, stag: ourSTag, size: n}
	l.Post(wire.Untagged(wire.Send, ours.octets()))
	a, err := l.Next(timeout)
	if err != nil {
		return sink, 0, fmt.Errorf("waiting for the Read of rping -s: %w", err)
	}
	if a.Opcode == wire.Terminate {
		return sink, 0, fmt.Errorf("waiting for the Read of rping -s: %w", errTerminated)
	}
	sink, err = wire.ParseReadHeader(a.Payload)
	if a.Opcode != wire.ReadRequest || err != nil {
		return sink, 0, fmt.Errorf("waiting for the Read of rping -s: there came %s", a.Segment)
	}
	if sink.Length != n {
		return sink, 0, fmt.Errorf("rping -s reads %d octets of %d", sink.Length, n)
	}
	ping := make([]byte, n)
	copy(ping, "rdma-ping-0: conformance")
	l.Post(wire.Tagged(wire.ReadResponse, sink.SinkSTag, sink.SinkTO, ping))
	theirs, err := awaitAdvert(l, timeout)
	if err == nil && theirs.stag == sink.SinkSTag && theirs.to == sink.SinkTO {
		advertised = int(theirs.size)
	}
	return sink, advertised, err
}
