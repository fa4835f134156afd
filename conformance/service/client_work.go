package service

import (
	"context"
	"time"
)

// AllocPD makes a protection domain.
func (c *Client) AllocPD(ctx context.Context) (*PD, error) {
	return ask[PD](ctx, c, "pd", struct{}{})
}

// ClosePD gives a protection domain up that nothing belongs to.
func (c *Client) ClosePD(ctx context.Context, pd int) error {
	return c.call(ctx, "close_pd", PD{PD: pd}, nil)
}

// Register opens memory.
func (c *Client) Register(ctx context.Context, args RegisterArgs) (*Region, error) {
	return ask[Region](ctx, c, "register", args)
}

// Deregister closes a region. When it returns, nothing changes its memory any
// more, which can still be read.
func (c *Client) Deregister(ctx context.Context, mr int) error {
	return c.call(ctx, "deregister", MR{MR: mr}, nil)
}

// Release gives a region up with its memory; it is deregistered first.
func (c *Client) Release(ctx context.Context, mr int) error {
	return c.call(ctx, "release", MR{MR: mr}, nil)
}

// MemoryRead returns n bytes of a region from byte off on.
func (c *Client) MemoryRead(ctx context.Context, mr int, off uint64, n int) ([]byte, error) {
	d, err := ask[Data](ctx, c, "memory_read", ReadArgs{MR: mr, Offset: off, Length: n})
	if err != nil {
		return nil, err
	}
	return d.Data, nil
}

// MemoryWrite changes bytes of a region from byte off on.
func (c *Client) MemoryWrite(ctx context.Context, mr int, off uint64, data []byte) error {
	return c.call(ctx, "memory_write", WriteArgs{MR: mr, Offset: off, Data: data}, nil)
}

// FastRegister makes a region valid that was registered with Fast.
func (c *Client) FastRegister(ctx context.Context, args FastRegisterArgs) (*Region, error) {
	return ask[Region](ctx, c, "fast_register", args)
}

// Window makes a memory window that is not bound.
func (c *Client) Window(ctx context.Context, args WindowArgs) (*NewWindow, error) {
	return ask[NewWindow](ctx, c, "window", args)
}

// Bind binds a window to a part of a region.
func (c *Client) Bind(ctx context.Context, args BindArgs) (*Window, error) {
	return ask[Window](ctx, c, "bind", args)
}

// CloseWindow gives a window up.
func (c *Client) CloseWindow(ctx context.Context, mw int) error {
	return c.call(ctx, "close_window", MW{MW: mw}, nil)
}

// Invalidate invalidates an STag of the server's side.
func (c *Client) Invalidate(ctx context.Context, args InvalidateArgs) error {
	return c.call(ctx, "invalidate", args, nil)
}

// Tag returns the state of the STag of a region or window.
func (c *Client) Tag(ctx context.Context, args TagArgs) (*Tag, error) {
	return ask[Tag](ctx, c, "tag", args)
}

// CreateSRQ makes a shared receive queue.
func (c *Client) CreateSRQ(ctx context.Context, args SRQArgs) (*SRQ, error) {
	return ask[SRQ](ctx, c, "srq", args)
}

// CloseSRQ gives a shared receive queue up that no queue pair uses.
func (c *Client) CloseSRQ(ctx context.Context, srq int) error {
	return c.call(ctx, "close_srq", CloseSRQArgs{SRQ: srq}, nil)
}

// Post posts requests to the send queue of a queue pair. If one of them is
// refused, the *Error has the numbers of those before it.
func (c *Client) Post(ctx context.Context, qp int, posts ...Post) ([]uint64, error) {
	r, err := ask[IDs](ctx, c, "post", PostArgs{QP: qp, Posts: posts})
	if err != nil {
		return nil, err
	}
	return r.IDs, nil
}

// Recv posts receives to a queue pair, as Post does.
func (c *Client) Recv(ctx context.Context, qp int, recvs ...Recv) ([]uint64, error) {
	return c.recv(ctx, RecvArgs{QP: qp, Recvs: recvs})
}

// RecvShared posts receives to a shared receive queue, as Post does.
func (c *Client) RecvShared(ctx context.Context, srq int, recvs ...Recv) ([]uint64, error) {
	return c.recv(ctx, RecvArgs{SRQ: srq, Recvs: recvs})
}

func (c *Client) recv(ctx context.Context, args RecvArgs) ([]uint64, error) {
	r, err := ask[IDs](ctx, c, "recv", args)
	if err != nil {
		return nil, err
	}
	return r.IDs, nil
}

// Completion waits for the next completion of a queue of a queue pair: SendQueue or
// RecvQueue.
func (c *Client) Completion(ctx context.Context, qp int, queue string, timeout time.Duration) (*Completion, error) {
	return ask[Completion](ctx, c, "completion", CompletionArgs{QP: qp, Queue: queue, Timeout: millis(timeout)})
}

// Arm arms a queue of a queue pair to fire once, at the next completion.
func (c *Client) Arm(ctx context.Context, args ArmArgs) error {
	return c.call(ctx, "arm", args, nil)
}

// Fired waits until a queue that was armed has fired.
func (c *Client) Fired(ctx context.Context, qp int, queue string, timeout time.Duration) error {
	return c.call(ctx, "fired", CompletionArgs{QP: qp, Queue: queue, Timeout: millis(timeout)}, nil)
}
