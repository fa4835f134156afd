package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// A Client is a session, seen from the side that asks. Its methods may be called
// from several goroutines, and take their turns.
//
// A method returns an [*Error] if the server has answered with one; the session
// continues. Any other error ends the session, and so does a context that ends
// before the answer has arrived: that answer could not be distinguished from
// the next one.
type Client struct {
	conn  net.Conn
	lines *bufio.Reader
	hello Hello

	mu   sync.Mutex
	last uint64 // ID of the last request
	err  error  // why the session has ended

	asked, answered time.Time // when the last call ended, and the last that had an answer
	silent          bool      // the last call had no answer, or said that nothing came in time
}

// Dial opens a session with the service at host:port.
func Dial(ctx context.Context, address string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("conformance service: %w", err)
	}
	c := &Client{conn: conn, lines: bufio.NewReader(conn)}
	if err := c.call(ctx, "hello", HelloArgs{Version: Version}, &c.hello); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if c.hello.Version != Version {
		err := fmt.Errorf("conformance service: %s speaks version %d of the protocol, and this side version %d", address, c.hello.Version, Version)
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Hello returns what the server has said of itself.
func (c *Client) Hello() *Hello { return &c.hello }

// LocalAddr returns this side's address of the control connection: the host is
// one that the server can reach.
func (c *Client) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr returns the server's address.
func (c *Client) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// Close ends the session, and with it all that the server has opened for it. A
// call that waits for an answer fails.
func (c *Client) Close() error {
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("conformance service: %w", err)
	}
	return nil
}

// call asks for one operation and waits for its answer. result may be nil.
func (c *Client) call(ctx context.Context, op string, args, result any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return fmt.Errorf("conformance service: %s: the session has ended: %w", op, c.err)
	}
	err := c.exchange(ctx, op, args, result)
	c.note(err)
	if _, answered := errors.AsType[*Error](err); err == nil || answered {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	c.err = err
	_ = c.conn.Close() // err says why
	return fmt.Errorf("conformance service: %s: %w", op, err)
}

// note keeps whether a call had an answer.
func (c *Client) note(err error) {
	c.asked = time.Now()
	_, answered := errors.AsType[*Error](err)
	if answered || err == nil {
		c.answered = c.asked
	}
	c.silent = err != nil && (!answered || CodeOf(err) == CodeTimeout)
}

// Answered returns when the last call ended and when the last answer came, and reports
// whether the last call brought more than that nothing came in time.
func (c *Client) Answered() (asked, answered time.Time, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.answered, !c.silent
}

func (c *Client) exchange(ctx context.Context, op string, args, result any) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.last++
	line, err := encode(Request{ID: c.last, Op: op}, args)
	if err != nil {
		return err
	}
	if _, err := c.conn.Write(line); err != nil {
		return err
	}
	line, err = ReadLine(c.lines, MaxLine)
	if err != nil {
		return err
	}
	var a Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("the answer can't be understood: %w", err)
	}
	switch {
	case a.ID == 0 && a.Error != nil: // the server ends the session
		return a.Error
	case a.ID != c.last:
		return fmt.Errorf("the answer is one to request %d, and %d was asked", a.ID, c.last)
	case a.Error != nil:
		return a.Error
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("the result can't be understood: %w", err)
	}
	return nil
}

// encode returns a request as a line.
func encode(r Request, args any) ([]byte, error) {
	var err error
	if r.Args, err = json.Marshal(args); err != nil {
		return nil, err
	}
	line, err := json.Marshal(r)
	return append(line, '\n'), err
}

// millis returns a duration as the protocol says it: rounded up, so that little
// does not become none.
func millis(d time.Duration) int {
	return int(max(0, (d+time.Millisecond-1)/time.Millisecond))
}
