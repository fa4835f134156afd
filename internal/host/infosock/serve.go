package infosock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// writeTimeout bounds how long one that asks may take to read.
	writeTimeout = 5 * time.Second
	// maxAsking is how many may ask at once.
	maxAsking = 8
)

// A Server serves what a process has.
type Server struct {
	report   func() any
	listener *net.UnixListener
	slots    chan struct{}
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	workers  sync.WaitGroup
}

// Serve serves what a function returns at a socket of a kind in a directory, "" for Dir, until Close. The function is
// called whenever somebody asks.
func Serve(dir, kind string, report func() any) (*Server, error) {
	if dir == "" {
		dir = Dir()
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	removeStale(dir, kind)
	s := &Server{report: report, slots: make(chan struct{}, maxAsking)}
	for i := 0; ; i++ {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d-%d.sock", kind, os.Getpid(), i))
		if _, err := os.Lstat(path); err == nil {
			continue // of this process, too
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return nil, err
		}
		s.listener = l
		break
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.workers.Go(s.accept)
	return s, nil
}

// Path returns the path of the socket.
func (s *Server) Path() string { return s.listener.Addr().String() }

// Close removes the socket, and waits until nobody is served any more.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.workers.Wait()
	return err
}

func (s *Server) accept() {
	for {
		select {
		case s.slots <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // there are no descriptors
			<-s.slots
			select {
			case <-time.After(10 * time.Millisecond):
			case <-s.ctx.Done():
			}
			continue
		}
		s.workers.Go(func() {
			defer func() { <-s.slots }()
			s.answer(conn)
		})
	}
}

// answer tells one that asks. If it does not read, it is its loss.
func (s *Server) answer(conn net.Conn) {
	defer func() { _ = conn.Close() }() // what matters has been read or written
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // a closed connection says so below
	_ = json.NewEncoder(conn).Encode(s.report())
}
