package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"time"

	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A T is what a case works with. Its methods end the case where they say so, by
// runtime.Goexit: call them from the case's own goroutine only.
type T struct {
	ctx     context.Context
	c       Case
	role    Roles
	opts    Options
	session Session
	tape    *wire.Tape
	llp     LLP
	record  *recording // or nil
	conns   []*wire.Conn
	lasting bool // the target's own messages are let pass
	result  *Result
}

// Context ends when the run is given up.
func (t *T) Context() context.Context { return t.ctx }

// Role returns the target's role in this run of the case.
func (t *T) Role() Roles { return t.role }

// Timeout returns how long an answer may take.
func (t *T) Timeout() time.Duration { return t.opts.Timeout }

// Quiet returns how long nothing must come where nothing may.
func (t *T) Quiet() time.Duration {
	if t.opts.Quiet > 0 {
		return t.opts.Quiet
	}
	return t.opts.rtt.quiet(t.opts.Timeout)
}

// Note puts a remark on the tape.
func (t *T) Note(format string, args ...any) { t.tape.Note(wire.Control, fmt.Sprintf(format, args...)) }

// Fail ends the case: the target has broken the clause. Expected and actual are
// human-readable.
func (t *T) Fail(expected, gotFormat string, args ...any) {
	t.verdict(Fail, "")
	t.result.Expected, t.result.Got = expected, fmt.Sprintf(gotFormat, args...)
	t.result.Reason = "expected " + expected + "; got " + t.result.Got
	runtime.Goexit()
}

// Check ends the case as Fail does, unless ok.
func (t *T) Check(ok bool, expected, gotFormat string, args ...any) {
	if !ok {
		t.Fail(expected, gotFormat, args...)
	}
}

// Inconclusive ends the case: what has come says neither.
func (t *T) Inconclusive(format string, args ...any) {
	t.verdict(Inconclusive, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// Skip ends the case: it can't be tried with this target.
func (t *T) Skip(format string, args ...any) {
	t.verdict(Skipped, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// Try ends the case as inconclusive if something that is not the target's conduct
// went wrong.
func (t *T) Try(err error, what string) {
	if err != nil {
		if _, answered := errors.AsType[*service.Error](err); !answered {
			t.tape.Look(false)
		}
		t.Inconclusive("%s: %v", what, err)
	}
}

func (t *T) verdict(v Verdict, reason string) {
	t.result.Verdict, t.result.Reason = v, reason
	if v == Fail || v == Inconclusive {
		t.result.Sent = t.lastSent()
	}
}

// lastSent describes what the tester has sent last.
func (t *T) lastSent() string {
	events, _ := t.tape.Events()
	for _, e := range slices.Backward(events) {
		if e.By == wire.Tester {
			if e.Wrong != "" {
				return e.What + " (" + e.Wrong + ")"
			}
			return e.What
		}
	}
	return "nothing"
}

// HasService reports whether the target has a test service, for cases that say more
// with one, and don't need it.
func (t *T) HasService() bool { return t.session.Service() != nil }

// Service returns the target's test service. It skips the case if there is none.
func (t *T) Service() *service.Client {
	s := t.session.Service()
	if s == nil {
		t.Skip("the profile has no test service")
	}
	return s
}

// Root returns the file handle of the directory in which the target lets files be
// made. It skips the case if there is none.
func (t *T) Root() []byte {
	e, ok := t.session.(Exporter)
	if !ok {
		t.Skip("the profile has no NFS export")
	}
	handle, err := e.Root(t.ctx)
	t.Try(err, "mounting the target's export")
	return handle
}

// OverRDP reports whether the target is tested over RDP. Cases that judge DDP and RDMAP need not know.
func (t *T) OverRDP() bool { return t.llp == RDP }

// fits skips the case if its Setup asks for what the lower layer does not have.
func (t *T) fits(setup Setup) {
	if what := setup.ofMPA(); t.llp == RDP && what != "" {
		t.Skip("over RDP there is no %s", what)
	}
}

// Dial opens a connection to the target as a Responder, and no more.
func (t *T) Dial(setup Setup) *wire.Conn {
	t.fits(setup)
	nc, err := t.session.Dial(t.ctx, setup)
	t.Try(err, "connecting to the target")
	return t.conn(nc, true)
}

// DialAddr opens a connection to an address that the test service has named.
func (t *T) DialAddr(address string) *wire.Conn {
	c, err := t.dial(address)
	t.Try(err, "connecting to the target")
	return c
}

func (t *T) dial(address string) (*wire.Conn, error) {
	nc, err := t.session.DialAddr(t.ctx, address)
	if err != nil {
		t.tape.Look(false)
		return nil, err
	}
	return t.conn(nc, true), nil
}

// Accept has the target connect as an Initiator, and returns the connection.
func (t *T) Accept(setup Setup) *wire.Conn {
	t.fits(setup)
	nc, err := t.session.Accept(t.ctx, setup)
	t.Try(err, "waiting for the target to connect")
	return t.conn(nc, false)
}

// Connect opens a connection with the target in the role of this run.
func (t *T) Connect(setup Setup) *wire.Conn {
	if t.role == Initiator {
		return t.Accept(setup)
	}
	return t.Dial(setup)
}

func (t *T) conn(nc net.Conn, initiator bool) *wire.Conn {
	var rec wire.Recorder
	if m, ok := nc.(wire.MessageConn); ok {
		m.Record(t.record.segments())
	} else if t.record != nil {
		rec = t.record.stream(nc.LocalAddr(), nc.RemoteAddr(), initiator)
	}
	c := wire.NewConn(nc, t.tape, rec)
	c.BeginMSNs(t.FirstMSN())
	t.conns = append(t.conns, c)
	return c
}
