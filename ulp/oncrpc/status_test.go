package oncrpc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// here is where calls come from that no transport brings.
var here = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 700}

// stream is a call with arguments.
func stream(t testing.TB, c oncrpc.Call, args func(*xdr.Encoder)) []byte {
	t.Helper()
	var e xdr.Encoder
	if err := c.Encode(&e); err != nil {
		t.Fatal(err)
	}
	if args != nil {
		args(&e)
	}
	return e.AppendTo(nil)
}

// head is the header of a call of the test's program.
func head(xid, procedure uint32) oncrpc.Call {
	return oncrpc.Call{XID: xid, Program: program, Version: version, Procedure: procedure}
}

// answer gives a call to a server as a transport does, and returns the whole reply.
func answer(t testing.TB, s oncrpc.Service, call []byte, from net.Addr) ([]byte, error) {
	t.Helper()
	var reply xdr.Encoder
	x := &oncrpc.Exchange{Call: &oncrpc.Message{Stream: call}, Netid: "tcp", Local: here, Remote: from}
	err := s.Serve(t.Context(), x, &reply)
	return reply.AppendTo(nil), err
}

func sys(t testing.TB, uid uint32) oncrpc.Auth {
	t.Helper()
	a, err := (&oncrpc.Sys{Machine: "m", UID: uid, Groups: []uint32{1, 2}}).Auth()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// RFC 5531 §9.
func TestEachStatus(t *testing.T) {
	s := newService(t, oncrpc.ServerConfig{})
	strict := &oncrpc.Program{Number: 77, Flavors: []oncrpc.Flavor{oncrpc.AuthSys, oncrpc.RPCSECGSS}, Versions: []oncrpc.ProgramVersion{
		{Number: 1, Procedures: map[uint32]oncrpc.Procedure{1: {Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			in.Results.Uint32(uint32(in.Header.Cred.Flavor))
			return nil
		}}}},
		{Number: 9},
	}}
	if err := s.Register(strict); err != nil {
		t.Fatal(err)
	}
	word := func(e *xdr.Encoder) { e.Uint32(1) }
	opaque := func(e *xdr.Encoder) { e.Opaque([]byte("hello")) }
	bad := oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: []byte{0, 0, 0, 1}}
	accepted := func(stat oncrpc.AcceptStat, versions ...uint32) error {
		e := &oncrpc.AcceptedError{Stat: stat}
		if len(versions) > 0 {
			e.Low, e.High = versions[0], versions[1]
		}
		return e
	}
	denied := func(stat oncrpc.AuthStat) error {
		return &oncrpc.RejectedError{Stat: oncrpc.AuthError, Auth: stat}
	}
	for _, c := range []struct {
		name string
		call oncrpc.Call
		args func(*xdr.Encoder)
		want error
		left int // bytes of results
	}{
		{"NULL", head(1, 0), nil, nil, 0},
		{"NULL of a version without procedures", oncrpc.Call{Program: program, Version: 2}, nil, nil, 0},
		{"ECHO", head(1, procEcho), opaque, nil, 12},
		{"NULL with arguments", head(1, 0), word, accepted(oncrpc.GarbageArguments), 0},
		{"no such program", oncrpc.Call{Program: program + 1, Version: version}, nil, accepted(oncrpc.ProgramUnavailable), 0},
		{"no such version", oncrpc.Call{Program: program, Version: version + 1}, nil, accepted(oncrpc.ProgramMismatch, 2, 3), 0},
		{"a version between others", oncrpc.Call{Program: 77, Version: 5}, nil, accepted(oncrpc.ProgramMismatch, 1, 9), 0},
		{"no such procedure", head(1, 1000), nil, accepted(oncrpc.ProcedureUnavailable), 0},
		{"no arguments", head(1, procEcho), nil, accepted(oncrpc.GarbageArguments), 0},
		{"arguments that are too short", head(1, procEcho), word, accepted(oncrpc.GarbageArguments), 0},
		{"arguments that are too long", head(1, procEcho), func(e *xdr.Encoder) { opaque(e); word(e) }, accepted(oncrpc.GarbageArguments), 0},
		{"a handler that fails", head(1, procFail), nil, accepted(oncrpc.SystemError), 0},
		{"a handler that panics", head(1, procPanic), nil, accepted(oncrpc.SystemError), 0},
		{"a handler that refuses", head(1, procWho), nil, denied(oncrpc.AuthTooWeak), 0},
		{"AUTH_SYS", oncrpc.Call{Program: program, Version: version, Procedure: procWho, Cred: sys(t, 500)}, nil, nil, 4},
		{"AUTH_SYS that can't be decoded", oncrpc.Call{Program: program, Version: version, Cred: bad}, nil, denied(oncrpc.AuthBadCred), 0},
		{"AUTH_SHORT", oncrpc.Call{Program: program, Version: version, Cred: oncrpc.Auth{Flavor: oncrpc.AuthShort}}, nil, denied(oncrpc.AuthRejectedCred), 0},
		{"another flavor of no program", oncrpc.Call{Program: 1, Cred: oncrpc.Auth{Flavor: 99}}, nil, denied(oncrpc.AuthRejectedCred), 0},
		{"a verifier", oncrpc.Call{Program: program, Version: version, Cred: sys(t, 1), Verf: sys(t, 1)}, nil, denied(oncrpc.AuthBadVerf), 0},
		{"AUTH_NONE where it is not taken", oncrpc.Call{Program: 77, Version: 1, Procedure: 1}, nil, denied(oncrpc.AuthTooWeak), 0},
		{"AUTH_NONE for NULL", oncrpc.Call{Program: 77, Version: 1}, nil, nil, 0},
		{"a flavor that the program knows", oncrpc.Call{Program: 77, Version: 1, Procedure: 1, Cred: oncrpc.Auth{Flavor: oncrpc.RPCSECGSS}, Verf: bad}, nil, nil, 4},
	} {
		c.call.XID = 4711
		p, err := answer(t, s, stream(t, c.call, c.args), here)
		var r oncrpc.Reply
		d := xdr.NewDecoder(p)
		if err := errors.Join(err, r.Decode(d)); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.XID != 4711 || r.Verf.Flavor != oncrpc.AuthNone || d.Left() != c.left {
			t.Errorf("%s: XID %d, verifier of flavor %d, results of %d octets", c.name, r.XID, r.Verf.Flavor, d.Left())
		}
		if (r.Err == nil) != (c.want == nil) || r.Err != nil && r.Err.Error() != c.want.Error() {
			t.Errorf("%s: %v; want %v", c.name, r.Err, c.want)
		}
	}
}

func TestCallsThatAreNone(t *testing.T) {
	s := newService(t, oncrpc.ServerConfig{})
	call := stream(t, head(7, 0), nil)
	mismatch := bytes.Clone(call)
	mismatch[11] = 3
	long := bytes.Clone(call)
	long[28], long[29], long[30], long[31] = 0, 0, 1, 0x94 // a credential of 404 bytes
	reply := bytes.Clone(call)
	reply[7] = 1
	for _, c := range []struct {
		name string
		call []byte
		want string // the reply; empty if there is none
	}{
		{"nothing", nil, ""},
		{"an XID", call[:4], ""},
		{"half of a type", call[:6], ""},
		{"a reply", reply, ""},
		{"no version", call[:8], "decode the arguments"},
		{"no procedure", call[:20], "decode the arguments"},
		{"no credential", call[:24], "bad credential"},
		{"no verifier", call[:36], "bad credential"},
		{"a credential of 404 octets", append(long, make([]byte, 404)...), "bad credential"},
		{"version 3 of the protocol", mismatch, "2 to 2"},
	} {
		p, err := answer(t, s, c.call, here)
		if c.want == "" {
			if !errors.Is(err, oncrpc.ErrNoReply) || len(p) > 0 {
				t.Errorf("%s: %x, %v", c.name, p, err)
			}
			continue
		}
		var r oncrpc.Reply
		if err := errors.Join(err, r.Decode(xdr.NewDecoder(p))); err != nil || r.XID != 7 || r.Err == nil || !strings.Contains(r.Err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %s", c.name, r, err, c.want)
		}
	}
}

func TestWhatAHandlerMayReturn(t *testing.T) {
	var failure error
	handle := func(_ context.Context, in *oncrpc.Incoming) error {
		in.Results.Bulk([]byte("not to be seen"))
		return failure
	}
	var log bytes.Buffer
	s := oncrpc.NewServer(oncrpc.ServerConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := s.Register(&oncrpc.Program{Number: program, Versions: []oncrpc.ProgramVersion{{Number: version, Procedures: map[uint32]oncrpc.Procedure{1: {Name: "ONE", Handle: handle}}}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&oncrpc.AcceptedError{Stat: oncrpc.ProcedureUnavailable}, "no such procedure"},
		{&oncrpc.AcceptedError{}, "has failed"},
		{&oncrpc.RejectedError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}, "too weak"},
		{errors.New("disk on fire"), "has failed"},
	} {
		failure = c.err
		p, err := answer(t, s, stream(t, head(1, 1), nil), here)
		var r oncrpc.Reply
		d := xdr.NewDecoder(p)
		if err := errors.Join(err, r.Decode(d)); err != nil || r.Err == nil || !strings.Contains(r.Err.Error(), c.want) || d.Left() != 0 {
			t.Errorf("%v: %v, %v, %d octets left", c.err, r.Err, err, d.Left())
		}
	}
	if !strings.Contains(log.String(), "disk on fire") || !strings.Contains(log.String(), "ONE") {
		t.Errorf("the log does not say what has failed: %s", log.String())
	}
	failure = oncrpc.ErrNoReply
	if _, err := answer(t, s, stream(t, head(1, 1), nil), here); !errors.Is(err, oncrpc.ErrNoReply) {
		t.Errorf("no reply: %v", err)
	}
}

// A failure that the server's end has caused is none that a client should hear of: it is
// to try again.
func TestCallThatEndsWithItsConnectionHasNotFailed(t *testing.T) {
	s := newService(t, oncrpc.ServerConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var reply xdr.Encoder
	x := &oncrpc.Exchange{Call: &oncrpc.Message{Stream: stream(t, head(1, procWait), nil)}, Remote: here}
	if err := s.Serve(ctx, x, &reply); !errors.Is(err, oncrpc.ErrNoReply) {
		t.Errorf("%x, %v", reply.AppendTo(nil), err)
	}
	gone := make(chan error)
	go func() { _, err := answer(t, s, stream(t, head(2, procSaved), nil), here); gone <- err }()
	<-s.entered
	<-s.entered
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-gone; !errors.Is(err, oncrpc.ErrNoReply) {
		t.Errorf("when the server is closed: %v", err)
	}
}

func TestProgramsThatCannotBeRegistered(t *testing.T) {
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	good := &oncrpc.Program{Number: 1, Versions: []oncrpc.ProgramVersion{{Number: 1}}}
	for name, p := range map[string]*oncrpc.Program{
		"no versions":     {Number: 2},
		"a version twice": {Number: 2, Versions: []oncrpc.ProgramVersion{{Number: 1}, {Number: 1}}},
		"no handler":      {Number: 2, Versions: []oncrpc.ProgramVersion{{Number: 1, Procedures: map[uint32]oncrpc.Procedure{1: {}}}}},
		"the first again": {Number: 1, Versions: []oncrpc.ProgramVersion{{Number: 1}}},
	} {
		if err := s.Register(good, p); err == nil {
			t.Errorf("%s: it was registered", name)
		}
		if p, err := answer(t, s, stream(t, oncrpc.Call{Program: 1, Version: 1}, nil), here); err != nil || bytes.Count(p, []byte{0, 0, 0, 1}) != 2 { // type reply, PROG_UNAVAIL
			t.Errorf("%s: the other one was registered: %x, %v", name, p, err)
		}
	}
	if err := s.Register(good); err != nil {
		t.Error(err)
	}
}

// What a client makes of what servers say.
func TestClientReturnsWhatTheServerSays(t *testing.T) {
	c := newClient(t, oncrpc.OverTCP(newService(t, oncrpc.ServerConfig{}).listen(t), oncrpc.TCPConfig{}), oncrpc.ClientConfig{})
	var accepted *oncrpc.AcceptedError
	v := call(0)
	v.Version = 9
	if err := c.Call(t.Context(), v); !errors.As(err, &accepted) || accepted.Stat != oncrpc.ProgramMismatch || accepted.Low != 2 || accepted.High != 3 {
		t.Errorf("version 9: %v", err)
	}
	var rejected *oncrpc.RejectedError
	if err := c.Call(t.Context(), call(procWho)); !errors.As(err, &rejected) || rejected.Auth != oncrpc.AuthTooWeak {
		t.Errorf("without a credential: %v", err)
	}
	v = call(procWho)
	v.Cred = sys(t, 1000)
	var uid uint32
	v.Results = func(d *xdr.Decoder) error { uid = d.Uint32(); return d.Err() }
	if err := c.Call(t.Context(), v); err != nil || uid != 1000 {
		t.Errorf("user %d, %v", uid, err)
	}
	var decode *xdr.Error
	v.Results = nil
	if err := c.Call(t.Context(), v); !errors.As(err, &decode) || !errors.Is(err, xdr.ErrTrailer) {
		t.Errorf("results where there should be none: %v", err)
	}
	v.Results = func(d *xdr.Decoder) error { d.Uint64(); return d.Err() }
	if err := c.Call(t.Context(), v); !errors.Is(err, xdr.ErrShort) {
		t.Errorf("results that are too short: %v", err)
	}
	v.Cred.Body = make([]byte, 401)
	if err := c.Call(t.Context(), v); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a credential of 401 octets: %v", err)
	}
	v = call(procEcho)
	v.Args = func(e *xdr.Encoder) { e.Opaque(make([]byte, 100)) }
	v.ResultsMost = 100
	if err := c.Call(t.Context(), v); !errors.Is(err, oncrpc.ErrReplyLong) {
		t.Errorf("104 octets where 100 may be: %v", err)
	}
	sink := make([]byte, 100)
	v.ResultsMost, v.Sinks = 4, [][]byte{sink}
	v.Args = func(e *xdr.Encoder) { e.Opaque(bytes.Repeat([]byte("x"), 100)) }
	v.Results = func(d *xdr.Decoder) error { d.BulkInto(sink); return d.Err() }
	if err := c.Call(t.Context(), v); err != nil || sink[99] != 'x' {
		t.Errorf("100 octets into a sink: %q, %v", sink, err)
	}
}
