package oncrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"urnic/ulp/oncrpc/xdr"
)

// A Dial makes a connection to a server: OverTCP returns one, and package ulp/rpcrdma's
// Dial is to be wrapped into one.
type Dial func(ctx context.Context) (Conn, error)

// A ClientConfig says how a client deals with connections that are lost. Its zero value
// keeps trying, as a hard mount of NFS does: calls wait until their contexts end.
type ClientConfig struct {
	// Dials is how many dials in a row may fail before the calls that wait for a
	// connection fail; 0 stands for no limit.
	Dials int

	// DialTimeout is how long one dial may take; 0 stands for 10 s.
	DialTimeout time.Duration

	// Backoff is the pause between the first and the second dial that have brought
	// nothing. It doubles from one to the next, up to BackoffMost. A third of it is
	// left to chance. 0 stands for 100 ms, and 10 s.
	Backoff, BackoffMost time.Duration

	// Sends is how often one call may be sent before it fails; 0 stands for no limit.
	Sends int

	// Patience is how long a reply may take before the connection is given up, and all
	// calls of it are sent on the next one; 0 stands for no limit.
	Patience time.Duration
}

// An Invocation is a call to be made.
type Invocation struct {
	Program, Version, Procedure uint32
	Cred, Verf                  Auth

	// Args writes the arguments; nil if there are none. Memory of its bulks is in use
	// until Call returns.
	Args func(*xdr.Encoder)

	// Results reads the results; nil if there are none. All that it keeps it must copy,
	// but what lies in Sinks.
	Results func(*xdr.Decoder) error

	// ResultsMost is the length of the longest results, in bytes, without what
	// belongs into Sinks.
	ResultsMost int
	// VerfMost is the length of the longest verifier in the reply, in bytes: servers
	// have none for AuthNone and AuthSys.
	VerfMost int
	Sinks    [][]byte // see Request
	Whole    bool     // see Request
}

// A Client makes calls to one server, many at a time, over one connection after the
// other. Its methods may be called from several goroutines.
type Client struct {
	dial Dial
	cfg  ClientConfig
	life context.Context // ends with Close
	kill context.CancelFunc
	bg   sync.WaitGroup

	mu     sync.Mutex
	xid    uint32 // of the last call
	flying map[uint32]struct{}
	conn   *link    // or nil
	dialer *dialing // or nil
	vain   int      // dials since the last reply
	dialed time.Time
	closed bool
}

// A link is a connection that can be distinguished from others.
type link struct{ Conn }

// NewClient returns a client, which dials when there is a call to make.
func NewClient(dial Dial, cfg ClientConfig) *Client {
	cfg.DialTimeout = cmp.Or(max(0, cfg.DialTimeout), 10*time.Second)
	cfg.Backoff = cmp.Or(max(0, cfg.Backoff), 100*time.Millisecond)
	cfg.BackoffMost = max(cfg.Backoff, cmp.Or(max(0, cfg.BackoffMost), 10*time.Second))
	c := &Client{dial: dial, cfg: cfg, xid: rand.Uint32(), flying: make(map[uint32]struct{})}
	c.life, c.kill = context.WithCancel(context.Background())
	return c
}

// headMost is the length of the longest header of a reply, in bytes: that of an accepted
// call, without a verifier's body (RFC 5531 §9).
const headMost = 24

// Call makes a call and returns once its results have been read, or it has failed. It
// returns an *AcceptedError or a *RejectedError if the server has not carried it out, the
// context's error if that ends, ErrClosed, or an error of the results.
// After an error that is not the server's nobody knows whether the call was carried out.
//
// If the connection is lost, the call is sent again on the next one, with its XID, by
// which a server can know it again.
func (c *Client) Call(ctx context.Context, v *Invocation) error {
	b := benches.Get().(*bench)
	defer b.release()
	xid, conn, err := c.begin()
	if err != nil {
		return err
	}
	defer c.end(xid)
	head := Call{XID: xid, Program: v.Program, Version: v.Version, Procedure: v.Procedure, Cred: v.Cred, Verf: v.Verf}
	if err := head.Encode(&b.enc); err != nil {
		return err
	}
	if v.Args != nil {
		v.Args(&b.enc)
	}
	b.req = Request{
		XID:       xid,
		Call:      &b.enc,
		ReplyMost: headMost + max(0, v.VerfMost) + max(8, v.ResultsMost), // 8: the versions that there are
		Sinks:     v.Sinks,
		Whole:     v.Whole,
	}
	m, err := c.send(ctx, conn, &b.req)
	if err != nil {
		return err
	}
	defer m.Release()
	b.dec.Reset(m.Stream, m.Moved...)
	return results(&b.dec, xid, v)
}

// results reads a reply.
func results(d *xdr.Decoder, xid uint32, v *Invocation) error {
	var r Reply
	if err := r.Decode(d); err != nil {
		return fmt.Errorf("oncrpc: the reply: %w", err)
	}
	if r.XID != xid {
		return fmt.Errorf("oncrpc: the reply is to call %#x, not to %#x", r.XID, xid)
	}
	if r.Err != nil {
		return r.Err
	}
	if v.Results != nil {
		if err := v.Results(d); err != nil {
			return fmt.Errorf("oncrpc: the results: %w", err)
		}
	}
	if err := d.End(); err != nil {
		return fmt.Errorf("oncrpc: the results: %w", err)
	}
	return nil
}

// begin gives a call an XID that no other one has before end. It returns the connection
// too, if there is one.
func (c *Client) begin() (uint32, *link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, nil, ErrClosed
	}
	for {
		c.xid++
		if _, used := c.flying[c.xid]; !used {
			break
		}
	}
	c.flying[c.xid] = struct{}{}
	return c.xid, c.conn, nil
}

func (c *Client) end(xid uint32) {
	c.mu.Lock()
	delete(c.flying, xid)
	c.mu.Unlock()
}

// errPatience says that no reply has come for too long.
var errPatience = errors.New("oncrpc: no reply came for as long as the client waits for one")

// send sends a call, once on each connection, until there is a reply or no hope.
func (c *Client) send(ctx context.Context, conn *link, r *Request) (*Message, error) {
	var lost *LostError
	for sent := 0; c.cfg.Sends <= 0 || sent < c.cfg.Sends; sent++ {
		if conn == nil || ended(conn) {
			var err error
			if conn, err = c.connect(ctx); err != nil {
				return nil, err
			}
		}
		m, err := c.do(ctx, conn, r)
		if err == nil {
			c.proven(conn)
			return m, nil
		}
		var ok bool
		if lost, ok = errors.AsType[*LostError](err); !ok {
			return nil, err
		}
		c.drop(conn)
		conn = nil
	}
	if c.cfg.Sends == 1 {
		return nil, lost
	}
	return nil, &resentError{c.cfg.Sends, lost}
}

// do sends a call on a connection, which it gives up if no reply comes for too long.
func (c *Client) do(ctx context.Context, conn *link, r *Request) (*Message, error) {
	if c.cfg.Patience <= 0 {
		return conn.Do(ctx, r)
	}
	patient, cancel := context.WithTimeout(ctx, c.cfg.Patience)
	defer cancel()
	m, err := conn.Do(patient, r)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = &LostError{errPatience}
	}
	return m, err
}

// Close ends the connection, and all calls with ErrClosed. It waits until nothing of the
// client continues but Call.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	conn := c.conn
	c.conn = nil
	c.mu.Unlock()
	c.kill()
	c.bg.Wait()
	if conn != nil {
		return conn.Close()
	}
	return nil
}
