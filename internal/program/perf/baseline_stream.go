package perf

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"urnic/internal/host/plural"
)

// A bareSet is the client's side of connections over bare TCP.
type bareSet struct {
	c     *client
	setup rawSetup
	index int // its number at the server
	conns []*rawConn
	stop  func() bool
}

// openBare makes the connections of a baseline.
func (c *client) openBare(ctx context.Context, setup rawSetup) (_ *bareSet, err error) {
	m, err := c.channel.ask(ctx, &message{Type: msgRaw, Raw: &setup}, msgListening)
	if err != nil {
		return nil, err
	}
	s := &bareSet{c: c, setup: setup, index: len(c.bares)}
	c.bares = append(c.bares, s)
	address := net.JoinHostPort(c.host, strconv.Itoa(m.Port))
	var d net.Dialer
	for range setup.Conns {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			var rc *rawConn
			if rc, err = newRawConn(conn, &s.setup, true); err == nil {
				s.conns = append(s.conns, rc)
			}
		}
		if err != nil {
			return nil, s.lost(err)
		}
	}
	s.stop = context.AfterFunc(ctx, s.shut) // so that nobody waits on them
	if c.opened != nil {
		c.opened(s)
	}
	return s, nil
}

func (s *bareSet) lost(err error) error { return &lostError{fmt.Errorf("the baseline: %w", err)} }

func (s *bareSet) shut() {
	for _, c := range s.conns {
		_ = c.Close() // the streams have ended
	}
}

// closeBares gives the connections of all baselines up, on both sides.
func (c *client) closeBares(ctx context.Context) error {
	if len(c.bares) == 0 {
		return nil
	}
	c.dropBares()
	_, err := c.channel.ask(ctx, &message{Type: msgRawClose}, msgRemoved)
	return err
}

// dropBares gives them up on this side.
func (c *client) dropBares() {
	for _, s := range c.bares {
		if s.stop != nil {
			s.stop()
		}
		s.shut()
	}
	c.bares = nil
}

// round makes a round: f is this side's part.
func (s *bareSet) round(ctx context.Context, r rawRound, f func(r *rawRound) error) (t timed, got *result, err error) {
	r.Set = s.index
	if s.setup.Kind == rawStream {
		r.End = make([]byte, endLen)
		_, _ = rand.Read(r.End) // it never fails
	}
	if _, err := s.c.channel.ask(ctx, &message{Type: msgRawRound, RawRound: &r}, msgRunning); err != nil {
		return t, nil, err
	}
	if t, err = measured(func() error { return f(&r) }); err != nil {
		return t, nil, s.lost(err)
	}
	m, err := s.c.channel.ask(ctx, &message{Type: msgStop}, msgResult)
	if err != nil {
		return t, nil, err
	}
	return t, m.Result, nil
}

// stream moves bytes, and returns how many came, in both directions.
func (s *bareSet) stream(ctx context.Context, r rawRound) (octets uint64, took timed, err error) {
	var sent, received uint64
	took, got, err := s.round(ctx, r, func(r *rawRound) (err error) {
		sent, received, err = streamAll(s.conns, true, r)
		return err
	})
	if err != nil {
		return 0, took, err
	}
	return got.Octets + received, took, errors.Join(errShort(sent, got.Octets), errShort(got.Sent, received))
}

// streamAll moves the bytes of all connections of one side.
func streamAll(conns []*rawConn, client bool, r *rawRound) (sent, received uint64, err error) {
	if len(conns) == 1 {
		return conns[0].stream(client, r)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			s, r, failed := c.stream(client, r)
			mu.Lock()
			defer mu.Unlock()
			sent, received, err = sent+s, received+r, errors.Join(err, failed)
		})
	}
	wg.Wait()
	return sent, received, err
}

// rawOf returns the bounds of a round over bare TCP that moves as much as one of
// requests does.
func rawOf(r round, size int) rawRound {
	if r.Iterations > 0 {
		return rawRound{Octets: r.Iterations * uint64(size)}
	}
	return rawRound{Duration: r.Duration}
}

// The sizes of calls up to which, and from which on, those of single messages are
// bounded.
const (
	fullCall = 64 << 10
	longCall = 1 << 20
)

// streamSetup returns connections for a stream with calls of some sizes.
func streamSetup(s setup, sizes callSizes) rawSetup {
	fetches := s.Op == OpRead
	return rawSetup{
		Kind: rawStream, Conns: s.QPs, Write: sizes.write, Read: sizes.read,
		ToServer: !fetches || s.Bidir, ToClient: fetches || s.Bidir,
	}
}

// streams reports whether the baselines are streams of bytes.
func (o *Options) streams() bool {
	return o.Test == TestBandwidth || o.Test == TestRate || o.Test == TestScale
}

// The two streams that requests are compared with.
const (
	perMessage = iota
	batched
)

// A bareStreams is the baselines of a case: one that makes a call for each message,
// and one that takes no heed of messages.
type bareStreams struct {
	size    int
	sets    [2]*bareSet
	tallies *[2]tally
	found   *calibration
}

// openStreams makes the connections of both, if baselines are wanted.
func (c *client) openStreams(ctx context.Context, s setup, tallies *[2]tally) (b *bareStreams, err error) {
	if !c.Baseline {
		return nil, nil
	}
	b = &bareStreams{size: s.Size, tallies: tallies, found: c.fastest[s.QPs]}
	for i, sizes := range []callSizes{sizesOfMessages(s.Size), b.found.best()} {
		if b.sets[i], err = c.openBare(ctx, streamSetup(s, sizes)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// sizesOfMessages returns the sizes of calls that move a message each.
func sizesOfMessages(size int) callSizes {
	return callSizes{write: min(size, maxCall), read: max(fullCall, min(size, longCall))}
}

// warm makes the rounds that are not counted.
func (b *bareStreams) warm(ctx context.Context, r round) error {
	if b == nil {
		return nil
	}
	for _, s := range b.sets {
		if _, _, err := s.stream(ctx, rawOf(r, b.size)); err != nil {
			return err
		}
	}
	return nil
}

// rounds makes one round of each.
func (b *bareStreams) rounds(ctx context.Context, r round, over func()) error {
	if b == nil {
		return nil
	}
	for i, s := range b.sets {
		octets, took, err := s.stream(ctx, rawOf(r, b.size))
		if err != nil {
			return err
		}
		b.tallies[i].add(float64(octets)/float64(b.size), took)
		over()
	}
	return nil
}

// compareStreams adds both baselines to a result. The one that the ratio is made of is
// that with calls for messages up to 64 KiB, and the other one for longer messages, or
// if the best one is wanted.
func (c *client) compareStreams(r *Result, s setup, tallies *[2]tally) {
	if !c.Baseline {
		return
	}
	found := c.fastest[s.QPs]
	for i, sizes := range []callSizes{sizesOfMessages(s.Size), found.best()} {
		b := baselineOf([]string{kindPerMessage, kindBatched}[i], tallies[i].result(s, c.perMessage()))
		b.WriteSize, b.ReadSize = sizes.write, sizes.read
		if i == batched {
			b.Tries = found.tries
		}
		r.Baselines = append(r.Baselines, b)
	}
	choice := r.Baselines[perMessage]
	if c.BaselineBest || s.Size > fullCall {
		choice = r.Baselines[batched]
	}
	for i := range r.Baselines {
		r.Baselines[i].compare(r)
	}
	r.compare(choice)
}

// errShort says that bytes of the baseline got lost, if they did.
func errShort(sent, received uint64) error {
	if sent == received {
		return nil
	}
	return fmt.Errorf("the baseline has sent %s, and %d arrived", plural.Count(sent, "byte"), received)
}
