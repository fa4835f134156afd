package rxkad

import (
	"math"

	"urnic/ulp/rx/secure"
)

// Index is rxkad's security index.
const Index = 2

// debugType names rxkad in debug packets.
const debugType = 3

// A ClientConfig says who a [Client] is.
type ClientConfig struct {
	Ticket Ticket
	Level  Level

	// Version1 makes the client answer challenges of version 1 of the protocol, in which
	// responses are not bound to their connection and packets need no checksums. No
	// server that is still in use needs it.
	Version1 bool
}

// A Client makes connections with one ticket. It implements [secure.Client]. Goroutines
// may share it.
type Client struct {
	cfg    ClientConfig
	sealer *sealer
}

// NewClient returns a client. The error is an [*Error].
func NewClient(cfg ClientConfig) (*Client, error) {
	if n := len(cfg.Ticket.Data); n < minTicket || n > maxTicket {
		return nil, fail(CodeTicketLength, "a ticket of %d bytes: they have from %d to %d", n, minTicket, maxTicket)
	}
	if cfg.Level > Crypt {
		return nil, fail(CodeIllegalLevel, "%s; there are clear, auth and crypt", cfg.Level)
	}
	return &Client{cfg: cfg, sealer: newSealer(cfg.Ticket.SessionKey)}, nil
}

// Index is rxkad's security index.
func (*Client) Index() uint8 { return Index }

// NewConn begins a connection.
func (c *Client) NewConn(conn secure.Conn) (secure.ClientConn, error) {
	return &clientConn{
		Session: newSession(c.sealer, conn, c.cfg.Level),
		client:  c,
		conn:    conn,
	}, nil
}

type clientConn struct {
	Session
	client *Client
	conn   secure.Conn
}

// Describe says what debug packets report about the connection.
func (c *clientConn) Describe() secure.Description {
	return secure.Description{Type: debugType, Level: uint8(c.level)}
}

// Respond answers a challenge.
func (c *clientConn) Respond(challenge []byte, calls secure.Calls) ([]byte, error) {
	asked, err := ParseChallenge(challenge)
	if err != nil {
		return nil, err
	}
	if asked.Version == 1 && !c.client.cfg.Version1 {
		return nil, fail(CodePacketShort, "the server asks in version 1 of the protocol, which is not secure and not allowed here")
	}
	if asked.Level > c.level {
		return nil, fail(CodeLevelFail, "the server wants %s, and the client has %s: use a higher level", asked.Level, c.level)
	}
	for _, call := range calls {
		if call > math.MaxInt32 {
			return nil, fail(CodeInconsistency, "the call number %d is above 2³¹: use a new connection", call)
		}
	}
	if asked.Version == 1 {
		c.lenient = true
	}
	r := response{
		version: asked.Version,
		calls:   calls,
		nonce:   asked.Nonce + 1,
		level:   c.level,
		ticket:  c.client.cfg.Ticket,
	}
	return r.append(make([]byte, 0, responseHead+len(r.ticket.Data)), c.client.sealer, c.conn), nil
}
