package rawudp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"urnic/ulp/rx"
)

// ServiceID is the Rx service that tells clients the port and a token.
const ServiceID = 148

// maxSessions bounds the clients that have tokens; the one that came first goes.
const maxSessions = 64

// A Server answers clients at a UDP port.
type Server struct {
	conn *net.UDPConn
	port uint16
	done sync.WaitGroup

	mu       sync.Mutex
	sessions map[uint64]*session
	order    []uint64 // of the tokens
}

// A session is what is known of a client.
type session struct {
	host  netip.Addr     // that has asked
	from  netip.AddrPort // which the first datagram came from
	last  uint32         // number of data that came, or that was sent
	since int            // data that came since the last count
	bytes uint64
}

// Listen opens a server at a free port of the address of an endpoint.
func Listen(ctx context.Context, addr netip.Addr) (*Server, error) {
	network := "udp"
	host := ""
	if addr.IsValid() && !addr.IsUnspecified() {
		host = addr.String()
	}
	var lc net.ListenConfig
	p, err := lc.ListenPacket(ctx, network, net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("rawudp: %w", err)
	}
	conn := p.(*net.UDPConn)
	setBuffers(conn)
	s := &Server{conn: conn, port: conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(), sessions: make(map[uint64]*session)}
	s.done.Go(s.run)
	return s, nil
}

// setBuffers makes the socket's buffers as large as an Rx endpoint's, as far as the system
// grants that.
func setBuffers(c *net.UDPConn) {
	const size = 4 << 20
	_ = c.SetReadBuffer(size)
	_ = c.SetWriteBuffer(size)
}

// Close closes the server.
func (s *Server) Close() error {
	err := s.conn.Close()
	s.done.Wait()
	return err
}

// Service returns the service for the endpoint.
func (s *Server) Service() rx.Service {
	return rx.Service{ID: ServiceID, Handler: rx.HandlerFunc(s.admit), Reach: true}
}

// admit tells a client the port and its token.
func (s *Server) admit(_ context.Context, c rx.ServerCall) error {
	if _, err := io.Copy(io.Discard, io.LimitReader(c, 1)); err != nil {
		return err
	}
	var b [12]byte
	binary.BigEndian.PutUint32(b[:], uint32(s.port))
	if _, err := rand.Read(b[4:]); err != nil {
		return err
	}
	token := binary.BigEndian.Uint64(b[4:])
	s.mu.Lock()
	if len(s.order) == maxSessions {
		delete(s.sessions, s.order[0])
		s.order = s.order[1:]
	}
	s.sessions[token] = &session{host: c.Peer().Addr().Unmap()}
	s.order = append(s.order, token)
	s.mu.Unlock()
	_, err := c.Write(b[:])
	return err
}

// find returns the session of a datagram; nil if there is none.
func (s *Server) find(token uint64, from netip.AddrPort) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sessions[token]
	switch {
	case c == nil || c.host != from.Addr().Unmap():
		return nil
	case !c.from.IsValid():
		c.from = from
	case c.from != from:
		return nil
	}
	return c
}

func (s *Server) run() {
	buf, out := make([]byte, MaxSize), make([]byte, MaxSize)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an error of something that was sent
		}
		p, ok := parse(buf[:n])
		if !ok {
			continue
		}
		c := s.find(p.token, from)
		if c == nil {
			continue
		}
		switch p.kind {
		case echo:
			s.send(buf[:n], from)
		case data:
			c.last = max(c.last, p.number)
			c.bytes += uint64(n)
			if c.since++; c.since >= every || p.amount == 1 {
				c.since = 0
				(&packet{p.token, count, c.last, c.bytes}).put(out)
				s.send(out[:headLen], from)
			}
		case pull:
			size := min(max(p.amount, MinSize), MaxSize)
			for until := min(p.number, c.last+maxWindow); c.last < until; {
				c.last++
				(&packet{p.token, data, c.last, 0}).put(out)
				s.send(out[:size], from)
			}
		case count:
		}
	}
}

// send sends a datagram; that one is lost is nothing new.
func (s *Server) send(b []byte, to netip.AddrPort) { _, _ = s.conn.WriteToUDPAddrPort(b, to) }
