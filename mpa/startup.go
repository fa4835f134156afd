package mpa

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"urnic/internal/host/sockio"
)

// Initiate starts MPA on conn as Initiator: it sends the Request and waits for
// the Reply (RFC 5044 §7.1.2).
//
// If the Responder rejects, it returns a *RejectedError and leaves conn open,
// as the RFC says. With CodeInsufficientIRD or CodeNoMatchingRTR it returns
// both an error and a Conn, so that the caller can send the Terminate that the
// Responder must get (RFC 6581 §9), and then close it. After any other error
// conn is closed: a *ConfigError, an *Error, or one that wraps the context's.
func Initiate(ctx context.Context, conn net.Conn, cfg Config) (*Conn, error) {
	c, err := initiate(ctx, conn, cfg)
	var rejected *RejectedError
	if c == nil && err != nil && !errors.As(err, &rejected) && conn != nil {
		_ = closeStream(conn, cfg.Recorder) // err says why already
	}
	return c, err
}

func initiate(ctx context.Context, conn net.Conn, cfg Config) (*Conn, error) {
	if err := checkArguments(ctx, conn, &cfg); err != nil {
		return nil, err
	}
	req, err := cfg.request()
	if err != nil {
		return nil, err
	}
	s := startup{conn: conn, recorder: cfg.Recorder}
	defer s.limit(ctx, orDefault(cfg.ReplyTimeout, DefaultReplyTimeout))()
	if err := s.send(&req); err != nil {
		return nil, s.why(ctx, "sending the Request", err)
	}
	rep, err := s.receive(Initiator)
	if err != nil {
		return nil, s.why(ctx, "waiting for the Reply", err)
	}
	p, err := cfg.complete(&req, &rep)
	if err != nil && !owesTerminate(err) {
		return nil, err
	}
	return newConn(conn, &cfg, p), err
}

// checkArguments refuses invalid arguments of start-up.
func checkArguments(ctx context.Context, conn net.Conn, cfg *Config) error {
	switch {
	case ctx == nil:
		return errNoContext
	case conn == nil:
		return &ConfigError{"there is no stream to start on"}
	}
	return cfg.Check()
}

var errNoContext = &ConfigError{"there is no context: say context.Background() if nothing is to end it"}

// owesTerminate reports whether the Initiator must send the Responder a
// Terminate that says why it does not continue (RFC 6581 §9).
func owesTerminate(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Code == CodeInsufficientIRD || e.Code == CodeNoMatchingRTR)
}

// A Request is a well-formed MPA Request that a Responder has received. It must
// be answered with Accept or Reject, or dropped with Close.
type Request struct {
	Frame    Frame
	Enhanced Enhanced // as sent, if Frame.Enhanced

	s   startup
	cfg Config
}

// ReceiveRequest starts MPA on conn as Responder: it waits for the Request and
// validates its form (RFC 5044 §7.1.2 rule 2). On an error it closes conn; the
// error is a *ConfigError, an *Error, or wraps the context's.
func ReceiveRequest(ctx context.Context, conn net.Conn, cfg Config) (*Request, error) {
	r, err := receiveRequest(ctx, conn, cfg)
	if err != nil {
		if conn != nil {
			_ = closeStream(conn, cfg.Recorder) // err says why already
		}
		return nil, err
	}
	return r, nil
}

func receiveRequest(ctx context.Context, conn net.Conn, cfg Config) (*Request, error) {
	if err := checkArguments(ctx, conn, &cfg); err != nil {
		return nil, err
	}
	r := &Request{cfg: cfg, s: startup{conn: conn, recorder: cfg.Recorder}}
	defer r.s.limit(ctx, orDefault(cfg.RequestTimeout, DefaultRequestTimeout))()
	f, err := r.s.receive(Responder)
	if err != nil {
		return nil, r.s.why(ctx, "waiting for the Request", err)
	}
	if err := cfg.checkRequest(&f); err != nil {
		return nil, err
	}
	// An Initiator must not send more before the Reply: what follows can only
	// be Private Data that PD_Length does not count.
	if n := len(r.s.rest()); n > 0 {
		r.s.recordRest()
		return nil, startupError("RFC 5044 §7.1.2", "%d octets follow the Request before the Reply", n)
	}
	r.Frame = f
	if f.Enhanced {
		r.Enhanced, err = ParseEnhanced(f.PrivateData)
	}
	return r, err
}

// PrivateData returns the private data of the Initiator's ULP.
func (r *Request) PrivateData() []byte { return r.Frame.ULPData() }

// NetConn returns the stream that the Request came on.
func (r *Request) NetConn() net.Conn { return r.s.conn }

// Accept answers the Request with a Reply that accepts, and enters full
// operation. cfg replaces the Config of ReceiveRequest, as the parameters may
// depend on the Request; only the Recorder stays.
//
// If the Initiator's IRD is below cfg.MinORD, Accept rejects and returns an
// *Error with CodeInsufficientIRD. After any error conn is closed.
func (r *Request) Accept(ctx context.Context, cfg Config) (*Conn, error) {
	cfg.Recorder = r.cfg.Recorder
	c, err := r.accept(ctx, cfg)
	if err != nil {
		_ = r.Close() // err says why already
		return nil, err
	}
	return c, nil
}

func (r *Request) accept(ctx context.Context, cfg Config) (*Conn, error) {
	if err := checkArguments(ctx, r.s.conn, &cfg); err != nil {
		return nil, err
	}
	if err := checkPrivateData(cfg.PrivateData, r.Frame.Enhanced); err != nil {
		return nil, err
	}
	rep, p, err := cfg.respond(&r.Frame, cfg.PrivateData)
	if err != nil && !rep.Rejected {
		return nil, err
	}
	if sendErr := r.answer(ctx, &rep); sendErr != nil {
		return nil, sendErr
	}
	if err != nil {
		return nil, err
	}
	return newConn(r.s.conn, &cfg, p), nil
}

// Reject answers the Request with a Reply that rejects, and leaves the TCP
// connection open for the caller to use or close (RFC 5044 §7.1.2 rule 2). The
// private data gives the Initiator's ULP the reason.
func (r *Request) Reject(ctx context.Context, privateData []byte) error {
	if ctx == nil {
		return errNoContext
	}
	if err := checkPrivateData(privateData, r.Frame.Enhanced); err != nil {
		return err
	}
	cfg := r.cfg
	cfg.MinORD = 0
	rep, _, err := cfg.respond(&r.Frame, privateData)
	if err != nil {
		return err
	}
	rep.Rejected = true
	return r.answer(ctx, &rep)
}

func (r *Request) answer(ctx context.Context, rep *Frame) error {
	defer r.s.limit(ctx, orDefault(r.cfg.ReplyTimeout, DefaultReplyTimeout))()
	if err := r.s.send(rep); err != nil {
		return r.s.why(ctx, "sending the Reply", err)
	}
	return nil
}

// Close drops a Request without an answer.
func (r *Request) Close() error { return closeStream(r.s.conn, r.s.recorder) }

// startup sends and receives start-up frames on a stream.
type startup struct {
	conn     net.Conn
	recorder Recorder
	buf      []byte // what was received
	parsed   int    // bytes of buf that the frame took
}

// limit bounds what is done on the stream, by ctx and by d, until the function
// that it returns is called.
func (s *startup) limit(ctx context.Context, d time.Duration) (done func()) {
	deadline := time.Now().Add(d)
	if ctx.Err() != nil { // AfterFunc would notice, but perhaps too late
		deadline = time.Unix(1, 0)
	}
	_ = s.conn.SetDeadline(deadline) // a closed stream fails soon enough
	var mu sync.Mutex
	over := false
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			_ = s.conn.SetDeadline(time.Unix(1, 0))
		}
	})
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
		_ = s.conn.SetDeadline(time.Time{})
	}
}

func (s *startup) send(f *Frame) error {
	b, err := f.AppendBinary(make([]byte, 0, f.Len()))
	if err != nil {
		return err
	}
	if _, err := s.conn.Write(b); err != nil {
		recordRead(s.recorder, err)
		return lost(err)
	}
	if s.recorder != nil {
		s.recorder.Sent(b)
	}
	return nil
}

// receive reads one frame. An Initiator reads no byte beyond it: that is for full
// operation, or for the ULP if the Reply rejects, "leaving the TCP connection
// open" (RFC 5044 §7.1.2 rule 3). A Responder may read more, which rest returns.
func (s *startup) receive(role Role) (Frame, error) {
	// One byte more than the longest frame, so as to notice what must not follow.
	s.buf = make([]byte, 0, FrameHeaderLen+MaxPrivateData+1)
	limit := cap(s.buf)
	if role == Initiator {
		limit = FrameHeaderLen
	}
	for {
		p := s.buf[len(s.buf):limit]
		n, err := s.conn.Read(p)
		if role == Responder && n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			n = s.lastLook(p)
		}
		s.buf = s.buf[:len(s.buf)+n]
		f, taken, perr := ParseFrame(s.buf)
		if !errors.Is(perr, ErrIncomplete) {
			s.parsed = taken
			s.record(taken)
			return f, perr
		}
		if err != nil {
			s.record(len(s.buf))
			recordRead(s.recorder, err)
			if errors.Is(err, io.EOF) && len(s.buf) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return Frame{}, lost(err)
		}
		if len(s.buf) == limit { // the header of a Reply, which ParseFrame has found good
			limit += int(binary.BigEndian.Uint16(s.buf[FrameHeaderLen-2:]))
		}
	}
}

// lastLook reads what has arrived when the time is up. When many connections
// arrive at once, there may have been no time to read a Request that has arrived.
func (s *startup) lastLook(p []byte) int {
	_ = s.conn.SetReadDeadline(time.Time{}) // in start-up no other Read follows
	n, _ := sockio.TryRead(s.conn, p)       // the time is up, whatever the error
	return n
}

func (s *startup) record(n int) {
	if s.recorder != nil && len(s.buf) > 0 {
		if n == 0 {
			n = len(s.buf) // not a frame: all of it
		}
		s.recorder.Received(s.buf[:n])
	}
}

// recordRest records what was received behind the frame and is not used.
func (s *startup) recordRest() {
	if rest := s.rest(); s.recorder != nil && len(rest) > 0 {
		s.recorder.Received(rest)
	}
}

// rest returns what was received behind the frame.
func (s *startup) rest() []byte { return s.buf[s.parsed:] }

// why says in which phase start-up failed, and whether the context ended it.
func (s *startup) why(ctx context.Context, phase string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("mpa: %s: %w", phase, context.Cause(ctx))
	}
	e, ours := err.(*Error) //nolint:errorlint // what it wraps is no start-up's
	if !ours {
		return fmt.Errorf("mpa: %s: %w", phase, err)
	}
	told := *e
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		told.Clause = "RFC 5044 §7.1.2"
		told.Reason = phase + " took too long: raise the time limit, or see whether the peer speaks MPA and has the other role"
	case e.Reason == "":
		told.Reason = phase
	default:
		told.Reason = phase + ": " + e.Reason
	}
	return &told
}

// A DialFunc opens a byte stream to the peer.
type DialFunc func(ctx context.Context) (net.Conn, error)

// Dial opens a stream and initiates MPA on it. If cfg leaves the revision open,
// and the peer ends the stream in answer to a Request of revision 2 or answers
// with revision 1, Dial tries once more, with a new stream and revision 1 (RFC
// 6581 §10). IRD and ORD are then left to the ULP. With the peer-to-peer model,
// which revision 1 does not have, there is no second try.
//
// The errors are those of Initiate and of dial. Unlike Initiate, Dial closes
// the stream on a *RejectedError too.
func Dial(ctx context.Context, dial DialFunc, cfg Config) (*Conn, error) {
	switch {
	case ctx == nil:
		return nil, errNoContext
	case dial == nil:
		return nil, &ConfigError{"there is no function to dial with"}
	}
	c, err := dialOnce(ctx, dial, cfg)
	if err == nil || cfg.Revision != 0 || !cfg.enhanced() || cfg.PeerToPeer || !speaksOnlyRevision1(err) {
		return c, err
	}
	cfg.Revision = Revision1
	c, err1 := dialOnce(ctx, dial, cfg)
	if err1 != nil {
		return c, &triesError{last: err1, first: err}
	}
	return c, nil
}

// A triesError reports why both tries of Dial have failed.
type triesError struct {
	last  error // with revision 1
	first error // with revision 2
}

// Error names the reason once if both have failed for the same one.
func (e *triesError) Error() string {
	if last, first := e.last.Error(), e.first.Error(); last != first {
		return last + "; with revision 2: " + first
	}
	return e.last.Error()
}

// Unwrap returns both.
func (e *triesError) Unwrap() []error { return []error{e.last, e.first} }

func dialOnce(ctx context.Context, dial DialFunc, cfg Config) (*Conn, error) {
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	c, err := Initiate(ctx, conn, cfg)
	if rejected := (*RejectedError)(nil); errors.As(err, &rejected) {
		_ = closeStream(conn, cfg.Recorder) // the one error that leaves it open
	}
	return c, err
}

// speaksOnlyRevision1 reports whether err looks like what a Responder without
// revision 2 does: it "MUST close the TCP connection" (RFC 6581 §10).
func speaksOnlyRevision1(err error) bool {
	if errors.Is(err, errRevision1) {
		return true
	}
	var e *Error
	return errors.As(err, &e) && e.Code == CodeConnectionLost && !errors.Is(err, os.ErrDeadlineExceeded)
}
