package oncrpc_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// count gives a call of procCount to a server and returns how often that has been carried
// out so far, as the reply says.
func count(t *testing.T, s *service, xid uint32, data string, from net.Addr) uint32 {
	t.Helper()
	p, err := answer(t, s, stream(t, head(xid, procCount), func(e *xdr.Encoder) { e.Opaque([]byte(data)) }), from)
	if err != nil {
		t.Fatal(err)
	}
	d := xdr.NewDecoder(p)
	var r oncrpc.Reply
	if err := errors.Join(r.Decode(d), r.Err); err != nil {
		t.Fatal(err)
	}
	return d.Uint32()
}

func TestCallThatWasSentAgainIsAnsweredAsBefore(t *testing.T) {
	s := newService(t, oncrpc.ServerConfig{})
	elsewhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 900}
	stranger := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 700}
	six := &net.TCPAddr{IP: net.ParseIP("::1"), Port: 700}
	socket := &net.UnixAddr{Name: "/run/a", Net: "unix"}
	long := strings.Repeat("x", 1900) // with what is in front, almost all that is looked at
	for i, c := range []struct {
		what string
		xid  uint32
		data string
		from net.Addr
		want uint32
	}{
		{"the first", 1, "a", here, 1},
		{"it again", 1, "a", here, 1},
		{"it from another port", 1, "a", elsewhere, 1},
		{"from another host", 1, "a", stranger, 2},
		{"from another family", 1, "a", six, 3},
		{"from where there are no addresses", 1, "a", socket, 4},
		{"from there again", 1, "a", socket, 4},
		{"from nowhere", 1, "a", nil, 5},
		{"with another XID", 2, "a", here, 6},
		{"with other arguments", 1, "b", here, 7},
		{"with longer arguments", 1, "a\x00\x00\x00\x00", here, 8},
		{"the first once more", 1, "a", here, 1},
		{"with long arguments", 1, long + "a", here, 9},
		{"with others behind them", 1, long + "b", here, 10},
		{"those again", 1, long + "a", here, 9},
	} {
		if got := count(t, s, c.xid, c.data, c.from); got != c.want {
			t.Errorf("call %d, %s: the reply is that to the %dth; want the %dth", i, c.what, got, c.want)
		}
	}
	if n := s.Stats(); n.Calls != 15 || n.Duplicates != 5 {
		t.Errorf("%+v", n)
	}
	p, _ := answer(t, s, stream(t, head(5, procEcho), func(e *xdr.Encoder) { e.Opaque([]byte("x")) }), here)
	q, _ := answer(t, s, stream(t, head(5, procEcho), func(e *xdr.Encoder) { e.Opaque([]byte("y")) }), here)
	if bytes.Equal(p, q) {
		t.Error("a procedure that may be carried out again was not")
	}
}

func TestOldestAnswersAreForgottenFirst(t *testing.T) {
	s := newService(t, oncrpc.ServerConfig{Duplicates: 3})
	for xid := range uint32(4) {
		count(t, s, xid, "", here)
	}
	for xid := uint32(3); xid >= 1; xid-- {
		if got := count(t, s, xid, "", here); got != xid+1 {
			t.Errorf("call %d was forgotten", xid)
		}
	}
	if got := count(t, s, 0, "", here); got != 5 {
		t.Error("call 0 was not forgotten")
	}
	if got := count(t, s, 1, "", here); got != 6 {
		t.Error("call 1 was not forgotten then")
	}
	s = newService(t, oncrpc.ServerConfig{DuplicateOctets: 2*28 + 1}) // each reply has 28
	for xid := range uint32(3) {
		count(t, s, xid, "", here)
	}
	for xid := uint32(2); xid >= 1; xid-- {
		if got := count(t, s, xid, "", here); got != xid+1 {
			t.Errorf("of octets: call %d was forgotten", xid)
		}
	}
	if got := count(t, s, 0, "", here); got != 4 {
		t.Error("of octets: call 0 was not forgotten")
	}
	s = newService(t, oncrpc.ServerConfig{DuplicateOctets: 27})
	if count(t, s, 1, "", here); count(t, s, 1, "", here) != 2 {
		t.Error("a reply that is longer than all may be was kept")
	}
}

// A client knows where bulks of the reply belong if it is the same again.
func TestAnswerIsTheSameAgainBulksAndAll(t *testing.T) {
	n := 0
	handle := func(_ context.Context, in *oncrpc.Incoming) error {
		n++
		in.Results.Uint32(uint32(n))
		in.Results.Bulk([]byte("hello"))
		in.Results.Uint32(9)
		in.Results.Bulk(nil)
		in.Results.Bulk([]byte("four"))
		in.Results.Uint32(8)
		return nil
	}
	s := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(&oncrpc.Program{Number: program, Versions: []oncrpc.ProgramVersion{{Number: version, Procedures: map[uint32]oncrpc.Procedure{1: {Handle: handle, Once: true}}}}}); err != nil {
		t.Fatal(err)
	}
	var replies [2]xdr.Encoder
	for i := range replies {
		x := &oncrpc.Exchange{Call: &oncrpc.Message{Stream: stream(t, head(1, 1), nil)}, Remote: here}
		if err := s.Serve(t.Context(), x, &replies[i]); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 || !bytes.Equal(replies[0].AppendTo(nil), replies[1].AppendTo(nil)) {
		t.Errorf("%d times; %x, then %x", n, replies[0].AppendTo(nil), replies[1].AppendTo(nil))
	}
	all := func(int, xdr.Bulk) bool { return true }
	if a, b := replies[0].Reduced(nil, all), replies[1].Reduced(nil, all); !bytes.Equal(a, b) {
		t.Errorf("without the bulks: %x, then %x", a, b)
	}
}

// It may be that a transport moves more of a call the second time, or less.
func TestCallThatWasMovedIsTheSame(t *testing.T) {
	s := newService(t, oncrpc.ServerConfig{})
	whole := stream(t, head(3, procCount), func(e *xdr.Encoder) { e.Opaque([]byte("hello")) })
	at := len(whole) - 8
	calls := []*oncrpc.Message{
		{Stream: whole},
		{Stream: whole[:at], Moved: []xdr.Moved{{Position: at, Data: []byte("hello")}}},
		{Stream: whole[:at], Moved: []xdr.Moved{{Position: at, Data: []byte("hello\x00\x00\x00")}}},
		{Stream: whole[:at], Moved: []xdr.Moved{{Position: at, Data: []byte("hello\x01\x02\x03")}}},
		{Stream: whole[:at], Moved: []xdr.Moved{{Position: at, Data: []byte("hallo")}}},
	}
	var first []byte
	for i, m := range calls {
		var reply xdr.Encoder
		if err := s.Serve(t.Context(), &oncrpc.Exchange{Call: m, Remote: here}, &reply); err != nil {
			t.Fatal(err)
		}
		p := reply.AppendTo(nil)
		if i == 0 {
			first = p
		}
		if same := i < 4; bytes.Equal(p, first) != same {
			t.Errorf("call %d: %x, after %x", i, p, first)
		}
	}
	lies := &oncrpc.Message{Stream: whole[:at], Moved: []xdr.Moved{{Position: -1, Data: []byte("x")}, {Position: 1 << 30, Data: []byte("y")}}}
	var reply xdr.Encoder
	if err := s.Serve(t.Context(), &oncrpc.Exchange{Call: lies, Remote: here}, &reply); err != nil {
		t.Error(err)
	}
}

func TestCallThatWasSentAgainWhileItIsCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, oncrpc.ServerConfig{})
		call := stream(t, head(1, procSaved), nil)
		type result struct {
			reply []byte
			err   error
		}
		serve := func(ctx context.Context, to chan<- result) {
			var reply xdr.Encoder
			err := s.Serve(ctx, &oncrpc.Exchange{Call: &oncrpc.Message{Stream: call}, Remote: here}, &reply)
			to <- result{reply.AppendTo(nil), err}
		}
		first, second, third := make(chan result, 1), make(chan result, 1), make(chan result, 1)
		lost, lose := context.WithCancel(t.Context())
		go serve(lost, first)
		<-s.entered
		go serve(t.Context(), second)
		gone, cancel := context.WithCancel(t.Context())
		go serve(gone, third)
		synctest.Wait()
		cancel() // nobody waits for the third any more
		if r := <-third; !errors.Is(r.err, oncrpc.ErrNoReply) {
			t.Errorf("the third: %x, %v", r.reply, r.err)
		}
		lose() // the connection of the first: it goes on nevertheless
		synctest.Wait()
		if len(first)+len(second) > 0 {
			t.Fatal("it has ended with its connection")
		}
		close(s.hold)
		a, b := <-first, <-second
		if a.err != nil || b.err != nil || len(a.reply) == 0 || !bytes.Equal(a.reply, b.reply) {
			t.Errorf("%x, %v; then %x, %v", a.reply, a.err, b.reply, b.err)
		}
		if len(s.entered) > 0 {
			t.Error("it was carried out twice")
		}
	})
}

func TestCallThatWasNotAnsweredIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var again bool
		entered, hold := make(chan struct{}), make(chan struct{})
		handle := func(_ context.Context, in *oncrpc.Incoming) error {
			if again {
				in.Results.Uint32(1)
				return nil
			}
			close(entered)
			<-hold
			again = true
			return oncrpc.ErrNoReply
		}
		s := oncrpc.NewServer(oncrpc.ServerConfig{})
		if err := s.Register(&oncrpc.Program{Number: program, Versions: []oncrpc.ProgramVersion{{Number: version, Procedures: map[uint32]oncrpc.Procedure{1: {Handle: handle, Once: true}}}}}); err != nil {
			t.Fatal(err)
		}
		call := stream(t, head(1, 1), nil)
		errs := make(chan error, 2)
		serve := func() { _, err := answer(t, s, call, here); errs <- err }
		go serve()
		<-entered
		go serve()
		synctest.Wait()
		close(hold)
		for range 2 {
			if err := <-errs; !errors.Is(err, oncrpc.ErrNoReply) {
				t.Error(err)
			}
		}
		if p, err := answer(t, s, call, here); err != nil || len(p) != 28 {
			t.Errorf("%x, %v", p, err)
		}
	})
}
