package perf

import (
	"context"
	"errors"
	"fmt"
	"net"

	"urnic/rnic"
)

// A session is what a server does for one client.
type session struct {
	server   *Server
	token    [tokenLen]byte
	host     string // where the client has found the server
	incoming chan connection
	channel  *channel
	fail     context.CancelCauseFunc // ends it

	group    *group
	reserved uint64
	transfer *transfer
	player   *player
	task     *task     // what happens until the client says stop
	raws     []*rawSet // connections of baselines
}

// A connection is one for data that has come for a session.
type connection struct {
	*rnic.ConnRequest
	index int
}

// A task is the server's part of a round. stop waits for its end, and says what
// has become of it.
type task struct {
	stop func(m *message) (*result, error)
	done func() // waits for the end, when the context has ended
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// serve accepts the control connection and does what the client asks for, until
// it hangs up or asks for something wrong.
func (s *session) serve(ctx context.Context, r *rnic.ConnRequest) (err error) {
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	s.fail = cancel
	read := make(chan struct{})
	if s.channel, err = newChannel(s.server.Device); err != nil {
		close(read)
		cancel(nil)
		return errors.Join(err, r.Close())
	}
	defer func() {
		cancel(nil)
		<-read
		err = errors.Join(err, s.end(), s.channel.close())
	}()
	if err := r.Accept(ctx, s.channel.qp, rnic.ConnParam{PrivateData: s.token[:]}); err != nil {
		close(read)
		return err
	}
	s.server.log("client %v is here", r.RemoteAddr())
	go func() {
		defer close(read)
		s.channel.read(ctx)
		cancel(s.channel.err)
	}()
	for {
		m, there := <-s.channel.messages
		if !there {
			if errors.Is(s.channel.err, errHungUp) && s.group == nil && s.task == nil {
				return nil // as it was meant to be
			}
			return s.tell(parent, s.channel.err)
		}
		if err := s.answer(ctx, m); err != nil {
			return s.tell(parent, err)
		}
	}
}

// tell tells the client why the session ends, if it is still there.
func (s *session) tell(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = errEnding
	}
	if errors.Is(err, errHungUp) || s.channel.qp.State() != rnic.RTS {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rnic.DefaultCloseTimeout)
	defer cancel()
	if s.channel.say(ctx, &message{Type: msgError, Error: clip(err.Error())}) == nil {
		_ = s.channel.qp.Disconnect(ctx) // err says why
	}
	return err
}

// clip shortens a text so that it fits into a message.
func clip(s string) string { return s[:min(len(s), maxReason)] }

// maxReason is how many bytes a text has at most that goes into a message, or
// into private data.
const maxReason = 480

// end gives up all that the session has. Its context has ended.
func (s *session) end() error {
	if s.task != nil {
		s.task.done()
		s.task = nil
	}
	s.closeRaws()
	return s.drop()
}

// drop gives up the queue pairs of a case.
func (s *session) drop() error {
	if s.group == nil {
		return nil
	}
	err := s.group.close()
	s.server.release(s.reserved)
	s.group, s.transfer, s.player = nil, nil, nil
	return err
}

// answer does what a message asks for.
func (s *session) answer(ctx context.Context, m *message) error {
	if busy := s.task != nil; busy != (m.Type == msgStop) {
		return errOrder
	}
	switch {
	case m.Type == msgSetup && s.group == nil:
		return s.setup(ctx, m)
	case m.Type == msgRound && s.group != nil:
		return s.round(ctx, m.Round)
	case m.Type == msgRaw:
		return s.raw(ctx, m.Raw)
	case m.Type == msgRawRound:
		return s.rawRound(ctx, m.RawRound)
	case m.Type == msgRawClose:
		s.closeRaws()
		return s.channel.say(ctx, &message{Type: msgRemoved})
	case m.Type == msgStop:
		result, err := s.task.stop(m)
		s.task = nil
		if err != nil {
			return err
		}
		return s.channel.say(ctx, &message{Type: msgResult, Result: result})
	case m.Type == msgRemove && s.group != nil:
		if err := s.drop(); err != nil {
			return err
		}
		return s.channel.say(ctx, &message{Type: msgRemoved})
	}
	return errOrder
}

var errOrder = errors.New("a message came out of its order: use the same urnic on both sides")

// setup makes the queue pairs of a case and waits until they are connected.
func (s *session) setup(ctx context.Context, m *message) (err error) {
	if err := m.Setup.check(s.server.MaxMemory); err != nil {
		return err
	}
	need := m.Setup.memory()
	if err := s.server.reserve(need); err != nil {
		return err
	}
	if s.group, err = newGroup(s.server.Device, *m.Setup, false); err != nil {
		s.server.release(need)
		return err
	}
	s.reserved = need
	g := s.group
	g.peer = *m.Memory
	if err := s.channel.say(ctx, &message{Type: msgReady, Memory: g.memories()}); err != nil {
		return err
	}
	cfg := g.mpa()
	for range g.ends {
		c, err := s.next(ctx)
		if err != nil {
			return err
		}
		if c.index >= len(g.ends) {
			return errors.Join(errProtocol, c.Close())
		}
		if err := c.Accept(ctx, g.ends[c.index].qp, g.param(nil, &cfg)); err != nil {
			return err
		}
	}
	switch {
	case g.Idle || g.Test == TestConnect:
	case g.pingPong():
		s.player = newPlayer(g)
	default:
		s.transfer = newTransfer(g)
	}
	return s.channel.say(ctx, &message{Type: msgConnected})
}

// next returns the next connection for data.
func (s *session) next(ctx context.Context) (connection, error) {
	select {
	case c := <-s.incoming:
		return c, nil
	case <-ctx.Done():
		return connection{}, context.Cause(ctx)
	}
}

// round begins the server's part of a round.
func (s *session) round(ctx context.Context, r *round) error {
	if err := r.check(); err != nil {
		return err
	}
	g := s.group
	if g.Idle {
		return errOrder
	}
	if g.Test == TestConnect {
		s.task = s.acceptConnections(ctx)
		return s.channel.say(ctx, &message{Type: msgRunning})
	}
	g.prepare(*r)
	if err := s.channel.say(ctx, &message{Type: msgRunning}); err != nil {
		return err
	}
	wait := s.background(func() error {
		if s.player != nil {
			return s.player.answer(ctx)
		}
		return s.transfer.run(ctx, *r)
	})
	s.task = &task{
		stop: func(*message) (*result, error) {
			if err := wait(); err != nil {
				return nil, err
			}
			return s.verified()
		},
		done: func() { _ = wait() }, // the session has an error of its own
	}
	return nil
}

// background runs f, and returns what waits for its end. An error ends the
// session: the client waits for what will not come.
func (s *session) background(f func() error) (wait func() error) {
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		if err = f(); err != nil {
			s.fail(err)
		}
	}()
	return func() error {
		<-ended
		return err
	}
}

// verified checks what has arrived, and counts it.
func (s *session) verified() (*result, error) {
	if s.player != nil {
		return &result{Messages: s.player.came}, s.group.verify(0, s.player.place, s.player.came)
	}
	return &result{Messages: s.transfer.came(), Sent: s.transfer.sent()}, s.transfer.verify()
}

// raw makes the connections of a baseline, or begins a round in which some are made
// and closed.
func (s *session) raw(ctx context.Context, r *rawSetup) error {
	if err := r.check(s.server.MaxMemory); err != nil {
		return err
	}
	if r.Kind == rawConnect {
		raw, err := listenRaw(ctx, s.host, r)
		if err != nil {
			return fmt.Errorf("the baseline: %w", err)
		}
		s.task = &task{
			stop: func(m *message) (*result, error) { return raw.stop(m.Made) },
			done: func() { <-raw.done },
		}
		return s.channel.say(ctx, &message{Type: msgListening, Port: portOf(raw.listener)})
	}
	if len(s.raws) >= maxRawSets {
		return errOrder
	}
	need := r.memory()
	if err := s.server.reserve(need); err != nil {
		return err
	}
	set, err := openRaw(ctx, s.host, r)
	if err != nil {
		s.server.release(need)
		return fmt.Errorf("the baseline: %w", err)
	}
	set.release = func() { s.server.release(need) }
	s.raws = append(s.raws, set)
	return s.channel.say(ctx, &message{Type: msgListening, Port: portOf(set.listener)})
}

// rawRound begins a round of a baseline.
func (s *session) rawRound(ctx context.Context, r *rawRound) error {
	if r.Set < 0 || r.Set >= len(s.raws) {
		return errOrder
	}
	set := s.raws[r.Set]
	if err := r.check(set.setup.Kind); err != nil {
		return err
	}
	var got *result
	wait := s.background(func() (err error) {
		got, err = set.run(ctx, r)
		return err
	})
	s.task = &task{
		stop: func(*message) (*result, error) {
			err := wait()
			return got, err
		},
		done: func() { _ = wait() }, // the session has an error of its own
	}
	return s.channel.say(ctx, &message{Type: msgRunning})
}

// closeRaws gives the connections of all baselines up.
func (s *session) closeRaws() {
	for _, set := range s.raws {
		set.close()
	}
	s.raws = nil
}
