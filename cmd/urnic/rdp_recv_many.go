package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"urnic/ulp/rdp"
)

// first returns the first connection that brings a file, and ends the listener and the others.
func (r *rdpReceiver) first(ctx context.Context, l *rdp.Listener) (*rdp.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	found := make(chan *rdp.Conn)
	failed := make(chan error, 1)
	waiting.Go(func() {
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				failed <- err
				return
			}
			waiting.Go(func() {
				if brings(ctx, c) {
					select {
					case found <- c:
						return
					case <-ctx.Done():
					}
				}
				c.Close() //nolint:errcheck // it may have ended
			})
		}
	})
	select {
	case c := <-found:
		return c, l.Close()
	case err := <-failed:
		return nil, err
	}
}

// serve receives files into a directory, until there are as many as are wanted, or the context ends.
func (r *rdpReceiver) serve(ctx context.Context, l *rdp.Listener) error {
	device, err := r.config(r.stderr)
	if err != nil {
		return err
	}
	outer := ctx
	s := &rdpServer{rdpReceiver: r, log: device.Logger, next: 1, done: make(chan struct{}), slots: make(chan struct{}, rdpFilesAtOnce)}
	ctx, cancel := context.WithCancel(ctx)
	defer s.working.Wait()
	defer cancel()
	accepted := make(chan error, 1)
	s.working.Go(func() {
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				accepted <- err
				return
			}
			s.working.Go(func() { s.receive(ctx, c) })
		}
	})
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.failures.err()
	case err := <-accepted:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.count == 0 { // failures were logged
			return unlessEnded(outer, err)
		}
		return errors.Join(unlessEnded(outer, err), alwaysTell(s.failures.err()))
	}
}

// rdpFilesAtOnce is how many files are received at once with -d. The senders of others wait.
const rdpFilesAtOnce = 256

// An rdpServer receives files into a directory.
type rdpServer struct {
	*rdpReceiver
	log     *slog.Logger
	working sync.WaitGroup
	done    chan struct{} // closed when there are enough
	slots   chan struct{} // of files that are received

	mu       sync.Mutex
	next     int // the least number that may be free
	files    int // that have come to an end
	failures failures
}

// receive receives the file of a connection.
func (s *rdpServer) receive(ctx context.Context, c *rdp.Conn) {
	begun := time.Now()
	if !brings(ctx, c) {
		c.Close() //nolint:errcheck // it may have ended
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		c.Close() //nolint:errcheck // it may have ended
		return
	}
	part, err := createPart(s.dir, 0o666)
	if err != nil {
		s.finish(ctx, s.refuse(c, err))
		return
	}
	n, err := s.receiveAt(ctx, c, part)
	s.mu.Lock()
	defer s.mu.Unlock()
	name, number, nameErr := numberedName(s.dir, s.next)
	switch {
	case nameErr != nil:
		err = errors.Join(nameErr, part.discard())
	case err == nil:
		s.next = number + 1
		err = part.commit(name)
	case isPart(err) && n > 0:
		s.next = number + 1
		err = s.keep(c, part, name, n, err)
	default:
		err = errors.Join(adviseReceive(err, c.RemoteHost(), n), part.discard())
	}
	if err == nil {
		s.did(c, name, n, begun)
	} else {
		s.refuse(c, err) //nolint:errcheck // which finish tells
	}
	s.finishLocked(ctx, err)
}

// finish counts a file that has come to an end.
func (s *rdpServer) finish(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked(ctx, err)
}

func (s *rdpServer) finishLocked(ctx context.Context, err error) {
	if ctx.Err() != nil && toTell(ctx, err) == nil {
		return // it was interrupted
	}
	if err != nil && s.count == 0 {
		s.log.Error("a file was not received", "error", err)
	}
	s.failures.add(err)
	if s.files++; s.files == s.count {
		close(s.done)
	}
}
