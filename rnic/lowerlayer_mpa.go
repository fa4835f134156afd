package rnic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"urnic/internal/capture"
	"urnic/internal/host/sockio"
	"urnic/mpa"
)

// mpaLayer is the default LowerLayer of a device: MPA over the byte streams of a Network.
// If the device records, this layer does the recording.
type mpaLayer struct {
	network  Network
	template mpa.Config // for errors before the ULP has a say
	record   *capture.Writer
}

// Dial implements LowerLayer.
func (m *mpaLayer) Dial(ctx context.Context, address string, o Offer) (LLPConn, error) {
	return m.dialVia(ctx, func(ctx context.Context) (net.Conn, error) { return m.network.Dial(ctx, address) }, o)
}

// dialVia is Dial over a byte stream that dial opens.
func (m *mpaLayer) dialVia(ctx context.Context, dial mpa.DialFunc, o Offer) (LLPConn, error) {
	cfg := o.mpa()
	var r recorder
	if m.record != nil {
		cfg.Recorder = &r
	}
	recorded := func(ctx context.Context) (net.Conn, error) {
		c, err := dial(ctx)
		if err == nil {
			r.end() // of a first try with another revision, whose endpoints may be used again
			r.stream = m.stream(c, true)
		}
		return c, err
	}
	conn, err := mpa.Dial(ctx, recorded, cfg)
	if conn == nil {
		r.end()
		return nil, err
	}
	return withRecording(conn, r.stream), err // MPA requires a message to the Responder if there is an error
}

// stream begins the recording of a byte stream, if the device records.
func (m *mpaLayer) stream(c net.Conn, initiator bool) *capture.Stream {
	if m.record == nil {
		return nil
	}
	return m.record.Stream(capture.AddrPort(c.LocalAddr()), capture.AddrPort(c.RemoteAddr()), initiator)
}

// Listen implements LowerLayer.
func (m *mpaLayer) Listen(ctx context.Context, address string) (LLPListener, error) {
	n, err := m.network.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return &mpaListener{n, m}, nil
}

// An mpaListener accepts byte streams.
type mpaListener struct {
	net.Listener
	layer *mpaLayer
}

// Accept implements LLPListener.
func (l *mpaListener) Accept() (LLPArrival, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &mpaArrival{c, l.layer}, nil
}

// An mpaArrival is a byte stream whose MPA Request has not arrived yet.
type mpaArrival struct {
	net.Conn
	layer *mpaLayer
}

// Receive implements LLPArrival.
func (a *mpaArrival) Receive(ctx context.Context) (LLPRequest, error) {
	r := &mpaRequest{stream: a.layer.stream(a.Conn, false)}
	cfg := a.layer.template
	if r.stream != nil {
		cfg.Recorder = r.stream
	}
	var err error
	if r.Request, err = mpa.ReceiveRequest(ctx, a.Conn, cfg); err != nil {
		r.forget()
		return nil, err
	}
	return r, nil
}

// An mpaRequest is an MPA Request.
type mpaRequest struct {
	*mpa.Request
	stream *capture.Stream // or nil
}

// MaxPrivateData implements LLPRequest: the Reply has the form of the Request.
func (r *mpaRequest) MaxPrivateData() int {
	if r.Frame.Enhanced {
		return mpa.MaxPrivateData - mpa.EnhancedLen
	}
	return mpa.MaxPrivateData
}

// Why the peer no longer waits for the answer to its Request.
var (
	errGone  = errors.New("the peer has closed the connection")
	errEarly = errors.New("the peer has sent something before the Reply (RFC 5044 §7.1.2)")
)

// Watch implements LLPRequest. The peer must not send before the Reply (RFC 5044
// §7.1.2), so reading loses nothing.
func (r *mpaRequest) Watch(ctx context.Context) error {
	c := r.NetConn()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // a closed stream waits for nothing
		close(interrupted)
	})
	n, err := c.Read(make([]byte, 1))
	if !stop() {
		<-interrupted
		_ = c.SetReadDeadline(time.Time{})
	}
	return heard(n, err)
}

// Look implements LLPRequest.
func (r *mpaRequest) Look() error { return heard(sockio.TryRead(r.NetConn(), make([]byte, 1))) }

// heard returns the error that reading before the answer has found; nil, if the
// peer is silent.
func heard(n int, err error) error {
	switch {
	case n > 0:
		return errEarly
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

// Accept implements LLPRequest.
func (r *mpaRequest) Accept(ctx context.Context, o Offer) (LLPConn, error) {
	conn, err := r.Request.Accept(ctx, o.mpa())
	if err != nil {
		r.forget()
		return nil, err
	}
	return withRecording(conn, r.stream), nil
}

// Reject implements LLPRequest.
func (r *mpaRequest) Reject(ctx context.Context, privateData []byte) error {
	err := r.Request.Reject(ctx, privateData)
	if err != nil {
		_ = r.Close() // err says why
	}
	return err
}

// Linger implements LLPRequest: "leaving the TCP connection open" (RFC 5044 §7.1.2 rule 2). An
// Initiator that finds the Reply and the end of the connection at the same time may look only
// at the latter, as Linux siw does. Then its ULP never gets the reason.
func (r *mpaRequest) Linger(ctx context.Context) {
	c := r.NetConn()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if r.stream == nil {
		_, _ = io.Copy(io.Discard, c) // whatever ends it
	} else {
		switch _, err := io.Copy(received{r.stream}, c); {
		case err == nil:
			r.stream.Close(false)
		case errors.Is(err, syscall.ECONNRESET):
			r.stream.Reset(false)
		}
	}
	_ = r.Close() // it has served its purpose
}

// received records its argument as received.
type received struct{ *capture.Stream }

func (r received) Write(p []byte) (int, error) {
	r.Received(p)
	return len(p), nil
}

// Close implements LLPRequest.
func (r *mpaRequest) Close() error {
	defer r.forget()
	return r.Request.Close()
}

// forget ends the recording of a byte stream whose start-up fails.
func (r *mpaRequest) forget() {
	if r.stream != nil {
		r.stream.End()
	}
}

// A recordedConn is a connection that is recorded.
type recordedConn struct {
	*mpa.Conn
	stream *capture.Stream
}

// withRecording returns a connection whose recording ends with Free.
func withRecording(c *mpa.Conn, s *capture.Stream) LLPConn {
	if s == nil {
		return c
	}
	return &recordedConn{c, s}
}

// Free implements LLPConn.
func (c *recordedConn) Free() {
	c.Conn.Free()
	c.stream.End()
}

// recorder records a start-up whose byte stream is known only once it is dialed.
type recorder struct{ stream *capture.Stream }

func (r *recorder) end() {
	if r.stream != nil {
		r.stream.End()
	}
}

// Sent implements mpa.Recorder.
func (r *recorder) Sent(pieces ...[]byte) { r.stream.Sent(pieces...) }

// Received implements mpa.Recorder.
func (r *recorder) Received(pieces ...[]byte) { r.stream.Received(pieces...) }

// Close implements mpa.Recorder.
func (r *recorder) Close(byUs bool) { r.stream.Close(byUs) }

// Reset implements mpa.Recorder.
func (r *recorder) Reset(byUs bool) { r.stream.Reset(byUs) }
