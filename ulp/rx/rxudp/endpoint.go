package rxudp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urnic/internal/host/udp"
	"urnic/ulp/rx"
	"urnic/ulp/rx/internal/work"
	"urnic/ulp/rx/machine"
)

// An Endpoint is a UDP socket that speaks Rx. It implements rx.Endpoint.
type Endpoint struct {
	sock     *udp.Socket
	links    *links
	pool     *work.Pool
	recorder Recorder
	start    time.Time

	mu       sync.Mutex // what follows, and all that the machine does
	m        *machine.Machine
	conns    map[*conn]struct{} // clients' connections of this process
	serving  map[*serverCall]struct{}
	jobs     []job // calls for whoever has received them to carry out
	admits   bool  // somebody carries them out
	calls    int   // of this process that were not closed
	waiting  int   // goroutines that wait for calls to change
	woke     bool  // some of them continue
	leave    bool  // who receives is to leave that to callers
	role     role
	spinner  spinner
	sending  bool // a goroutine sends what there is to send
	timer    *time.Timer
	alarm    machine.Time // when the timer rings; 0: it does not
	draining bool
	closed   bool
	quiet    *sync.Cond // a call has ended, while draining
	failure  error      // of the socket

	spares bool // callers receive themselves: no call comes in

	// Of whoever has the receiver's role.
	batchAt   machine.Time // when what is handed to the machine has come; 0: the lock is not held
	arrivedFn func(udp.Datagram)

	ended sync.Once
	// The socket's errors that were no end of it.
	sendErrors atomic.Uint64
}

var _ rx.Endpoint = (*Endpoint)(nil)

// Open opens an endpoint, whose services may be called from now on.
func Open(ctx context.Context, c Config) (*Endpoint, error) {
	services, err := rx.CheckServices(c.Services)
	if err != nil {
		return nil, err
	}
	if c.Buffer == 0 {
		c.Buffer = defaultBuffer
	}
	sock, err := udp.Open(ctx, udp.Network(c.Addr.Addr()), udp.Address(c.Addr), c.Buffer)
	if err != nil {
		return nil, fmt.Errorf("rx: the endpoint can't be opened: %w", err)
	}
	e := &Endpoint{
		sock: sock, links: newLinks(c.MaxPacket), pool: work.New(services, c.Log), recorder: c.Recorder, start: time.Now(),
		conns: make(map[*conn]struct{}), serving: make(map[*serverCall]struct{}),
	}
	e.quiet = sync.NewCond(&e.mu)
	e.m = machine.New(machine.Config{
		Epoch: c.Epoch, Start: e.start, Window: window(c.Window, sock.Received()), Link: e.links.datagram,
		DeadTime: c.DeadTime, IdleTime: c.IdleTime, MaxConns: c.MaxConns, Memory: c.Memory,
		Threads: e.threads, Version: c.Version, Answers: c.Answers,
	})
	for _, s := range services {
		err := e.m.Serve(machine.Service{
			ID: s.ID, Upgrade: s.Upgrade, Security: s.Security, NoNull: s.NoNull, Reach: s.Reach,
			DeadTime: s.DeadTime, IdleDead: s.IdleDead, HardDead: s.HardDead,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("rx: service %d: %w", s.ID, err), sock.Close())
		}
	}
	e.timer = time.AfterFunc(time.Hour, e.ring)
	e.timer.Stop()
	e.role.tick = time.AfterFunc(time.Hour, e.lapse)
	e.role.tick.Stop()
	e.arrivedFn, e.spares = e.arrived, len(services) == 0
	e.mu.Lock()
	e.attend()
	e.mu.Unlock()
	return e, nil
}

// window returns the receive window of calls: as many of the largest packets as fit the
// buffer of the socket, unless one is wanted.
func window(wanted, buffer int) int {
	const least, most = 32, 255
	if wanted > 0 {
		return min(wanted, most)
	}
	return min(max(buffer/2/largestRx, least), most)
}

// Addr is the address that the endpoint has.
func (e *Endpoint) Addr() netip.AddrPort {
	return netip.AddrPortFrom(e.sock.Local().Addr().Unmap(), e.sock.Local().Port())
}

// Stats tell what has happened at the endpoint.
func (e *Endpoint) Stats() machine.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.m.Stats()
}

// threads tells debug requests of the workers.
func (e *Endpoint) threads() machine.Threads {
	s := e.pool.Stats()
	return machine.Threads{Idle: s.Idle, Waiting: s.Waiting, Waited: s.Waited}
}

// Shutdown accepts no more calls, waits until those that handlers serve have ended and their
// clients have the replies, and closes the endpoint.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	e.pool.Close()
	e.mu.Lock()
	e.draining = true
	e.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.quiet.Broadcast()
	})
	defer stop()
	e.mu.Lock()
	for ctx.Err() == nil && !e.closed && (len(e.serving) > 0 || e.m.Unfinished() > 0) {
		e.attend()
		e.quiet.Wait()
	}
	e.mu.Unlock()
	return errors.Join(ctx.Err(), e.Close())
}

// Close ends all connections and calls, returns the peers, and waits for the handlers.
func (e *Endpoint) Close() error {
	var err error
	e.ended.Do(func() {
		e.pool.Close()
		e.mu.Lock()
		e.closed = true
		now := e.now()
		for c := range e.conns {
			c.mc.Close(now)
			c.wake()
		}
		for s := range e.serving {
			s.mc.Abort(now, restarting)
			s.changed()
		}
		e.quiet.Broadcast()
		e.unlock()
		e.pool.Wait()
		e.timer.Stop()
		e.role.tick.Stop()
		err = e.sock.Close()
		e.role.reading.Wait()
	})
	return err
}

// restarting is the code for calls of a server that closes.
const restarting = -100
