package perf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"urnic/mpa"

	"urnic/internal/host/plural"
	"urnic/rnic"
)

// A client measures against a server.
type client struct {
	Options
	dev      *rnic.Device
	address  string
	host     string // of the server, for bare TCP
	channel  *channel
	token    [tokenLen]byte
	report   *Report
	begun    bool // Begin is notified of the report
	segments *Segments
	bares    []*bareSet           // connections of baselines
	fastest  map[int]*calibration // of the baseline, by the number of connections
}

// Run measures against the server at host:port what the options ask for. It
// returns what was measured until something went wrong, if it did; the options
// may be notified of it meanwhile. segments reports the connections of dev.
func Run(ctx context.Context, dev *rnic.Device, segments *Segments, address string, o Options) (report *Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	c := &client{Options: o, dev: dev, address: address, report: newReport(&o)}
	if c.channel, err = newChannel(dev); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.channel.close()) }()
	if err := c.hello(ctx); err != nil {
		return nil, err
	}
	c.segments = segments
	reading, cancel := context.WithCancelCause(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.channel.read(reading)
	}()
	defer func() {
		cancel(nil)
		<-read
	}()
	defer c.dropBares()
	if err := c.measure(ctx); err != nil {
		return c.report, c.why(ctx, err)
	}
	return c.report, c.channel.qp.Disconnect(ctx)
}

// hello makes the control connection.
func (c *client) hello(ctx context.Context) error {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	qp := c.channel.qp
	if err := qp.Connect(ctx, c.address, rnic.ConnParam{PrivateData: controlHello(Version)}); err != nil {
		return refusal(err)
	}
	p, _ := qp.Params()
	if len(p.PrivateData) != tokenLen {
		return fmt.Errorf("what listens at %s is no urnic perf: give the address of `urnic perf server`", c.address)
	}
	copy(c.token[:], p.PrivateData)
	c.host = hostOf(qp.RemoteAddr())
	return nil
}

// refusal says why the server has rejected a connection, in its words.
func refusal(err error) error {
	var rejected *mpa.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	if len(rejected.PrivateData) == 0 || !utf8.Valid(rejected.PrivateData) {
		return fmt.Errorf("%w: give the address of `urnic perf server`", err)
	}
	return fmt.Errorf("the other side says: %s", rejected.PrivateData)
}

// why prefers what the server has said before it hung up.
func (c *client) why(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil: // the other side, which may be interrupted as well, may have ended first
		return errors.Join(context.Cause(ctx), err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("the system lets this process open no more files: ask for fewer queue pairs, or raise ulimit -n: %w", err)
	}
	var lost *lostError
	var state *rnic.StateError
	if errors.As(err, &lost) || errors.As(err, &state) {
		err = c.channel.orAnswer(err)
	}
	return refusal(err)
}

// measure makes all rounds of all cases.
func (c *client) measure(ctx context.Context) error {
	rounds := c.Rounds * len(c.QPs)
	switch {
	case c.Baseline && c.streams():
		rounds *= 3
	case c.Baseline:
		rounds *= 2
	}
	for _, size := range c.Sizes {
		if c.Hooks.Case != nil {
			c.Hooks.Case(rounds)
		}
		switch c.Test {
		case TestScale:
			return c.scale(ctx)
		case TestIdle:
			return c.idleOnly(ctx)
		default:
		}
		s := c.setup(size, c.QPs[0])
		var measure func(context.Context, setup) (Result, error)
		switch c.Test {
		case TestLatency:
			measure = c.latency
		case TestConnect:
			measure = c.connections
		default:
			measure = c.bandwidth
		}
		result, err := measure(ctx, s)
		if err != nil {
			return err
		}
		c.add(result)
	}
	return nil
}

func (c *client) add(r Result) {
	c.report.Results = append(c.report.Results, r)
	if c.Hooks.Result != nil {
		c.Hooks.Result(r)
	}
}

// roundOver reports a round.
func (c *client) roundOver() {
	if c.Hooks.Round != nil {
		c.Hooks.Round()
	}
}

// begin announces the report once there is a connection that has moved something,
// or several.
func (c *client) begin() {
	if c.begun {
		return
	}
	c.begun = true
	c.report.setPath(c.segments, c.channel.qp.LocalAddr(), &c.Options)
	if c.Hooks.Begin != nil {
		c.Hooks.Begin(c.report)
	}
}

// open makes and connects the queue pairs of a case.
func (c *client) open(ctx context.Context, s setup) (_ *group, err error) {
	g, err := newGroup(c.dev, s, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	m, err := c.channel.ask(ctx, &message{Type: msgSetup, Setup: &s, Memory: g.memories()}, msgReady)
	if err != nil {
		return nil, err
	}
	g.peer = *m.Memory
	cfg := s.mpa()
	for i, e := range g.ends {
		if err := e.qp.Connect(ctx, c.address, g.param(dataHello(c.token, i), &cfg)); err != nil {
			return nil, &lostError{err}
		}
	}
	_, err = c.channel.hear(ctx, msgConnected)
	return g, err
}

// shut gives the queue pairs of a case up, on both sides.
func (c *client) shut(ctx context.Context, g *group) error {
	_, err := c.channel.ask(ctx, &message{Type: msgRemove}, msgRemoved)
	return errors.Join(err, g.close())
}

// A timed is what the clock says of a round.
type timed struct {
	seconds float64
	mallocs uint64
}

// time takes the time of f, and counts what this process allocates meanwhile.
func measured(f func() error) (t timed, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err = f()
	t.seconds = time.Since(start).Seconds()
	runtime.ReadMemStats(&after)
	t.mallocs = after.Mallocs - before.Mallocs
	return t, err
}

// round makes one round with the server, and returns what that has seen to arrive. f is
// this side's part.
func (c *client) round(ctx context.Context, g *group, r round, f func() (made uint64, err error)) (t timed, got *result, err error) {
	g.prepare(r)
	if _, err := c.channel.ask(ctx, &message{Type: msgRound, Round: &r}, msgRunning); err != nil {
		return t, nil, err
	}
	var made uint64
	t, err = measured(func() (err error) {
		made, err = f()
		return err
	})
	if err != nil {
		return t, nil, err
	}
	m, err := c.channel.ask(ctx, &message{Type: msgStop, Made: made}, msgResult)
	if err != nil {
		return t, nil, err
	}
	return t, m.Result, nil
}

// errCame says that the receiver has seen fewer or more messages than were sent.
func errCame(came, sent uint64) error {
	return fmt.Errorf("the data are damaged: %s came of %d that were sent", plural.Count(came, "message"), sent)
}

// bareConnections makes a round in which connections over bare TCP are made and closed,
// by f. The clock stops when the server has accepted all.
func (c *client) bareConnections(ctx context.Context, loops int, f func(address string) (made uint64, err error)) (t timed, made uint64, err error) {
	m, err := c.channel.ask(ctx, &message{Type: msgRaw, Raw: &rawSetup{Kind: rawConnect, Conns: loops}}, msgListening)
	if err != nil {
		return t, 0, err
	}
	address := net.JoinHostPort(c.host, strconv.Itoa(m.Port))
	t, err = measured(func() (err error) {
		if made, err = f(address); err == nil {
			m, err = c.channel.ask(ctx, &message{Type: msgStop, Made: made}, msgResult)
		}
		return err
	})
	if err == nil && m.Result.Messages != made {
		err = fmt.Errorf("the baseline: the client made %s, and the server has accepted %d", plural.Count(made, "connection"), m.Result.Messages)
	}
	return t, made, err
}

// limits returns the bounds of a round, with a seed of its own.
func (c *client) limits() round {
	r := round{Seed: rand.Uint64(), Iterations: c.Iterations}
	if r.Iterations == 0 {
		r.Duration = c.Duration
	}
	return r
}

// warmup returns the bounds of the round that is not counted.
func (c *client) warmup() round {
	r := c.limits()
	if r.Iterations > 0 {
		r.Iterations = min(r.Iterations, uint64(4*c.Depth))
	} else {
		r.Duration = min(r.Duration/4+1, 100*time.Millisecond)
	}
	return r
}
