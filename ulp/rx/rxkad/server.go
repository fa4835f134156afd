package rxkad

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"urnic/ulp/rx/secure"
)

// A ServerConfig says what a [Server] demands.
type ServerConfig struct {
	Keys  *Keyring
	Level Level // the least that clients must use

	// Rand gives the nonces of challenges; nil is crypto/rand. Connections share it.
	Rand io.Reader

	// Version1 makes the server use version 1 of the protocol with clients whose packets
	// have no checksums. Without it they get version 2, and their packets are refused.
	Version1 bool
}

// A Server accepts connections of clients that have a ticket made with one of its keys.
// It implements [secure.Server]. Goroutines may share it.
type Server struct {
	cfg ServerConfig
}

// NewServer returns a server.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Keys == nil {
		return nil, errors.New("rxkad: a server needs a keyring")
	}
	if cfg.Level > Crypt {
		return nil, fail(CodeIllegalLevel, "%s; there are clear, auth and crypt", cfg.Level)
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	return &Server{cfg}, nil
}

// Index is rxkad's security index.
func (*Server) Index() uint8 { return Index }

// NewConn begins a connection of a client.
func (s *Server) NewConn(conn secure.Conn) (secure.ServerConn, error) {
	return &serverConn{server: s, conn: conn}, nil
}

type serverConn struct {
	server *Server
	conn   secure.Conn
	asked  bool
	nonce  uint32

	// These are there once a response was accepted.
	session *Session
	calls   secure.Calls
	caller  secure.Caller
}

func (c *serverConn) version() int {
	if c.server.cfg.Version1 && !c.conn.Checksum {
		return 1
	}
	return 2
}

// Challenge returns the body of a challenge.
func (c *serverConn) Challenge() ([]byte, error) {
	if !c.asked {
		var nonce [4]byte
		if _, err := io.ReadFull(c.server.cfg.Rand, nonce[:]); err != nil {
			return nil, fail(CodeInconsistency, "no random bytes for a challenge: %w", err)
		}
		c.nonce = binary.BigEndian.Uint32(nonce[:])
		c.asked = true
	}
	return Challenge{c.version(), c.nonce, c.server.cfg.Level}.Append(nil), nil
}

// Verify judges a response. One that follows an accepted response changes nothing: the
// network may deliver packets twice.
func (c *serverConn) Verify(response []byte, now time.Time) (secure.Calls, error) {
	if c.session != nil {
		return c.calls, nil
	}
	if !c.asked {
		return secure.Calls{}, fail(CodeInconsistency, "a response, and no challenge was sent")
	}
	x, err := open(c.server.cfg.Keys, c.version(), c.conn, response, func(says *Contents, old bool) error { return says.check(now, old) })
	if err != nil {
		return secure.Calls{}, err
	}
	// The nonce tells a new response from a recorded one.
	if x.Nonce != c.nonce+1 {
		return secure.Calls{}, fail(CodeOutOfSequence, "the response is not to this connection's challenge: was it replayed?")
	}
	if x.level < c.server.cfg.Level {
		return secure.Calls{}, fail(CodeLevelFail, "the client uses level %s, and %s is the least", x.level, c.server.cfg.Level)
	}
	c.session, c.calls = &x.Session, x.Calls
	c.caller = secure.Caller{
		Name:     x.Contents.principal(),
		Realm:    x.Contents.Realm,
		Class:    "rxkad",
		Level:    x.level.String(),
		Key:      x.KeyVersion,
		Expires:  x.Contents.End,
		Verified: true,
	}
	return c.calls, nil
}

// Authenticated reports whether calls may be served.
func (c *serverConn) Authenticated(now time.Time) (bool, error) {
	if c.session == nil {
		return false, nil
	}
	if end := c.caller.Expires; !end.IsZero() && !now.Before(end) {
		return false, fail(CodeExpired, "it ended %s: the client needs a new ticket and a new connection", stamp(end))
	}
	return true, nil
}

// Caller is who the client has proved to be.
func (c *serverConn) Caller() secure.Caller { return c.caller }

// Describe says what debug packets report about the connection.
func (c *serverConn) Describe() secure.Description {
	d := secure.Description{Type: debugType}
	if c.session != nil {
		d.Level, d.Authenticated, d.Expires = uint8(c.session.level), true, c.caller.Expires
	}
	return d
}

var errNotVerified = errors.New("the connection has no session key before a response was accepted")

func (c *serverConn) Overhead() int {
	if c.session == nil {
		return 0
	}
	return c.session.Overhead()
}

func (c *serverConn) Multiple() int {
	if c.session == nil {
		return 1
	}
	return c.session.Multiple()
}

func (c *serverConn) Least() int {
	if c.session == nil {
		return 0
	}
	return c.session.Least()
}

func (c *serverConn) Seal(p secure.Packet, body []byte, data int) (uint16, error) {
	if c.session == nil {
		return 0, &Error{CodeInconsistency, errNotVerified}
	}
	return c.session.Seal(p, body, data)
}

func (c *serverConn) Open(p secure.Packet, checksum uint16, body []byte) ([]byte, error) {
	if c.session == nil {
		return nil, &Error{CodeInconsistency, errNotVerified}
	}
	return c.session.Open(p, checksum, body)
}
