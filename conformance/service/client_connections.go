package service

import (
	"context"
	"time"
)

// ask is call that returns the result.
func ask[R any](ctx context.Context, c *Client, op string, args any) (*R, error) {
	r := new(R)
	if err := c.call(ctx, op, args, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Configure sets what holds for all connections of the session. It must come
// before anything is opened.
func (c *Client) Configure(ctx context.Context, args ConfigureArgs) error {
	return c.call(ctx, "configure", args, nil)
}

// Listen opens a listener, which accepts any number of connections.
func (c *Client) Listen(ctx context.Context, args ListenArgs) (*Listener, error) {
	return ask[Listener](ctx, c, "listen", args)
}

// CloseListener ends a listener; its connections stay.
func (c *Client) CloseListener(ctx context.Context, listener int) error {
	return c.call(ctx, "close_listener", ListenerArgs{Listener: listener}, nil)
}

// Accepted waits for the next request that a listener has dealt with. If start-up
// has failed, the *Error has what is known of the request.
func (c *Client) Accepted(ctx context.Context, listener int, timeout time.Duration) (*Accepted, error) {
	return ask[Accepted](ctx, c, "accepted", AcceptedArgs{Listener: listener, Timeout: millis(timeout)})
}

// Answer answers a request that a listener has held.
func (c *Client) Answer(ctx context.Context, args AnswerArgs) (*Accepted, error) {
	return ask[Accepted](ctx, c, "answer", args)
}

// Connect begins to connect. See Connected.
func (c *Client) Connect(ctx context.Context, args ConnectArgs) (*Connect, error) {
	return ask[Connect](ctx, c, "connect", args)
}

// Connected waits for the end of a start-up that Connect has begun.
func (c *Client) Connected(ctx context.Context, qp int, timeout time.Duration) (*Connected, error) {
	return ask[Connected](ctx, c, "connected", QPArgs{QP: qp, Timeout: millis(timeout)})
}

// CreateQP makes an idle queue pair.
func (c *Client) CreateQP(ctx context.Context, attr QPAttr) (*QP, error) {
	return ask[QP](ctx, c, "qp", attr)
}

// State returns the state of a queue pair.
func (c *Client) State(ctx context.Context, qp int) (*State, error) {
	return ask[State](ctx, c, "state", StateArgs{QP: qp})
}

// Becomes waits until a queue pair is in a state: events tell of errors, but not
// when the stream has ended that had one.
func (c *Client) Becomes(ctx context.Context, qp int, state string, timeout time.Duration) (*State, error) {
	return ask[State](ctx, c, "state", StateArgs{QP: qp, Until: state, Timeout: millis(timeout)})
}

// Disconnect closes a connection gracefully, and resets it when the time is up.
func (c *Client) Disconnect(ctx context.Context, qp int, timeout time.Duration) error {
	return c.call(ctx, "disconnect", EndArgs{QP: qp, Timeout: millis(timeout)}, nil)
}

// BeginDisconnect is Disconnect that does not wait for the peer.
func (c *Client) BeginDisconnect(ctx context.Context, qp int) error {
	return c.call(ctx, "disconnect", EndArgs{QP: qp, Begin: true}, nil)
}

// BeginTerminate is Terminate that does not wait for the peer.
func (c *Client) BeginTerminate(ctx context.Context, qp int) error {
	return c.call(ctx, "terminate", EndArgs{QP: qp, Begin: true}, nil)
}

// Terminate ends a stream with a Terminate message of a local catastrophic error.
func (c *Client) Terminate(ctx context.Context, qp int, timeout time.Duration) error {
	return c.call(ctx, "terminate", EndArgs{QP: qp, Timeout: millis(timeout)}, nil)
}

// Abort resets a connection.
func (c *Client) Abort(ctx context.Context, qp int) error {
	return c.call(ctx, "abort", QPArgs{QP: qp}, nil)
}

// Reset makes a queue pair idle again whose stream has ended.
func (c *Client) Reset(ctx context.Context, qp int) error {
	return c.call(ctx, "reset", QPArgs{QP: qp}, nil)
}

// CloseQP gives a queue pair up; a connection is reset.
func (c *Client) CloseQP(ctx context.Context, qp int) error {
	return c.call(ctx, "close", QPArgs{QP: qp}, nil)
}

// Event waits for an asynchronous event.
func (c *Client) Event(ctx context.Context, timeout time.Duration) (*Event, error) {
	return ask[Event](ctx, c, "event", WaitArgs{Timeout: millis(timeout)})
}

// Counters returns what the session's device has counted.
func (c *Client) Counters(ctx context.Context) (*Counters, error) {
	return ask[Counters](ctx, c, "counters", struct{}{})
}
