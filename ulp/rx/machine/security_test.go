package machine

import (
	"io"
	"testing"
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

var fakeService = Service{Security: []secure.Server{fakeServer{}}}

// sealed gives the machine a data packet that the fake class protects.
func (r *raw) sealed(call, seq uint32, flags wire.Flags, text string) {
	r.t.Helper()
	body := make([]byte, fakeHead, 64)
	body = append(body, text...)
	for len(body) < fakeLeast || len(body)%fakeMulti != 0 {
		body = append(body, 0)
	}
	h := r.header(wire.TypeData)
	h.Call, h.Seq, h.Flags, h.Security = call, seq, h.Flags|flags, fakeIndex
	var f fakeProtection
	sum, err := f.Seal(secure.Packet{Call: call, Channel: h.Channel(), Seq: seq}, body, len(text))
	if err != nil {
		r.t.Fatal(err)
	}
	h.Checksum = sum
	r.says(h, body)
}

// response answers a challenge, as a client of the fake class does.
func (r *raw) response(challenge packet, calls secure.Calls, wrong bool) {
	r.t.Helper()
	c := &fakeClientConn{wrong: wrong}
	body, err := c.Respond(challenge.body, calls)
	if err != nil {
		r.t.Fatal(err)
	}
	h := r.header(wire.TypeResponse)
	h.Call, h.Security = 0, fakeIndex
	r.says(h, body)
}

// A server asks who calls before anything is done for a call. The request waits; the response
// lets it be served.
func TestChallengeComesBeforeWork(t *testing.T) {
	r := newServer(t, Config{}, fakeService)
	r.sealed(1, 1, wire.FlagLast, "abcd")
	p := r.only(wire.TypeChallenge)
	if p.Call != 0 || p.Seq != 0 || p.CID != testCID || p.Security != fakeIndex || p.Flags != 0 || len(r.calls) != 0 {
		t.Errorf("sent: %v, %d calls", &p.Header, len(r.calls))
	}
	if r.suspect == 0 {
		t.Error("the request is not kept apart")
	}
	r.response(p, secure.Calls{1}, false)
	if len(r.calls) != 1 || r.suspect != 0 {
		t.Fatalf("%d calls, %d bytes are suspect", len(r.calls), r.suspect)
	}
	k := r.calls[0]
	r.reads(k, "abcd", io.EOF)
	if c := k.Caller(); c.Name != "fake" || !c.Verified {
		t.Errorf("the caller is %+v", c)
	}
	r.write(k, 3, true)
	sent := r.take()
	p = sent[len(sent)-1]
	var f fakeProtection
	got, err := f.Open(secure.Packet{Call: 1, Seq: 1}, p.Checksum, p.body)
	if string(got) != "012" || err != nil {
		t.Errorf("the reply is %q, %v", got, err)
	}
	r.response(packet{body: make([]byte, 4)}, secure.Calls{1}, true) // nobody has asked again
	if r.stats.Drops.Challenge != 1 || k.c.Err() != nil {
		t.Error("a response that nobody asked for is judged")
	}
	r.end()
}

// A challenge is repeated every two seconds while the call waits, and not after.
func TestChallengeIsRepeated(t *testing.T) {
	r := newServer(t, Config{}, fakeService)
	r.sealed(1, 1, wire.FlagLast, "abcd")
	r.pass(time.Minute)
	var at []Time
	for _, p := range r.take() {
		if p.Type == wire.TypeChallenge {
			at = append(at, p.at)
		}
	}
	if len(at) != 7 || at[1] != challengeWait || at[6] != 6*challengeWait {
		t.Errorf("challenges at %v", at)
	}
	if r.stats.LiveCalls != 0 || r.memory != 0 || r.suspect != 0 {
		t.Error("the call lives")
	}
}

// After 50 challenges the connection is given up, however often the client sends.
func TestChallengesEnd(t *testing.T) {
	r := newServer(t, Config{}, fakeService)
	n := 0
	for range 80 {
		r.sealed(1, 1, wire.FlagLast, "abcd")
		r.pass(challengeWait)
		for _, p := range r.take() {
			if p.Type == wire.TypeChallenge {
				n++
			}
		}
	}
	if n != challenges {
		t.Errorf("%d challenges", n)
	}
	for _, c := range r.list {
		fails(t, c.Err(), wire.CallDead, false)
	}
}

// A wrong response ends the connection with the class's code. A response that comes before
// any challenge is dropped.
func TestWrongResponse(t *testing.T) {
	r := newServer(t, Config{}, fakeService)
	r.sealed(1, 2, 0, "efgh") // no challenge before the first packet is here
	r.take()
	r.response(packet{body: make([]byte, 4)}, secure.Calls{}, true)
	r.quiet()
	if r.stats.Drops.Challenge != 1 {
		t.Fatal("a response that nobody asked for is judged")
	}
	r.sealed(1, 1, 0, "abcd")
	var challenge packet
	for _, p := range r.take() {
		if p.Type == wire.TypeChallenge {
			challenge = p
		}
	}
	r.response(challenge, secure.Calls{1}, true)
	if p := r.only(wire.TypeAbort); p.Call != 0 || code(p) != int32(fakeRefused) {
		t.Errorf("sent: %v, code %d", &p.Header, code(p))
	}
	if len(r.calls) != 0 || r.memory != 0 || r.stats.Refused != 1 {
		t.Error("the call is served, or kept")
	}
	r.sealed(1, 1, 0, "abcd")
	if p := r.only(wire.TypeAbort); code(p) != int32(fakeRefused) {
		t.Errorf("sent: %v", &p.Header)
	}
}

// The call numbers in a response are those of the calls outstanding: lower ones are replayed,
// and those themselves are served, though they have not come yet.
func TestCallNumbersInAResponse(t *testing.T) {
	r := newServer(t, Config{}, fakeService)
	r.sealed(5, 1, wire.FlagLast, "abcd")
	challenge := r.only(wire.TypeChallenge)
	r.response(challenge, secure.Calls{5, 9, 0, 3}, false)
	if len(r.calls) != 1 {
		t.Fatal("the call is not served")
	}
	send := func(channel, call uint32) int {
		before := len(r.calls)
		r.cid = testCID | channel
		body := make([]byte, 8)
		var f fakeProtection
		sum, _ := f.Seal(secure.Packet{Call: call, Channel: uint8(channel), Seq: 1}, body, 4)
		h := r.header(wire.TypeData)
		h.Call, h.Seq, h.Security, h.Checksum = call, 1, fakeIndex, sum
		r.says(h, body)
		return len(r.calls) - before
	}
	for _, step := range []struct {
		channel, call uint32
		want          int
	}{{1, 8, 0}, {1, 9, 1}, {2, 1, 1}, {3, 2, 0}, {3, 4, 1}} {
		if got := send(step.channel, step.call); got != step.want {
			t.Errorf("call %d on channel %d: %d are served; want %d", step.call, step.channel, got, step.want)
		}
	}

	r = newServer(t, Config{}, fakeService) // what is under way is a replay
	r.sealed(5, 1, wire.FlagLast, "abcd")
	r.response(r.only(wire.TypeChallenge), secure.Calls{6}, false)
	if len(r.calls) != 0 || r.memory != 0 {
		t.Error("a replayed call is served")
	}
}

// A packet that fails its check kills the connection, with the class's code: one that came
// before the response, and one after.
func TestPacketThatIsForged(t *testing.T) {
	for _, early := range []bool{true, false} {
		r := newServer(t, Config{}, fakeService)
		r.sum = 99
		r.index = fakeIndex
		if early {
			r.sealed(1, 1, 0, "abcd")
			r.data(2, 0, "forged!!")
			sent := r.take()
			r.response(sent[0], secure.Calls{1}, false)
		} else {
			r.sealed(1, 1, 0, "abcd")
			r.response(r.only(wire.TypeChallenge), secure.Calls{1}, false)
			r.take()
			r.data(2, 0, "forged!!")
		}
		sent := r.take()
		if p := sent[len(sent)-1]; p.Type != wire.TypeAbort || code(p) != int32(fakeSealed) || p.Call != 0 || r.stats.Drops.Seal != 1 {
			t.Errorf("sent: %v", headers(sent))
		}
		r.end()
	}
}

// A ticket that expires ends the connection with the next packet.
func TestTicketThatExpires(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	s := Service{Security: []secure.Server{fakeServer{until: start.Add(time.Minute)}}}
	r := newServer(t, Config{Start: start}, s)
	r.sealed(1, 1, 0, "abcd")
	r.response(r.only(wire.TypeChallenge), secure.Calls{1}, false)
	r.at = 61 * time.Second
	r.take()
	r.sealed(1, 2, 0, "efgh")
	if p := r.only(wire.TypeAbort); code(p) != int32(fakeExpired) {
		t.Errorf("sent: %v", &p.Header)
	}
}

// A class that refuses a connection has its code in the abort.
func TestClassThatRefusesAConnection(t *testing.T) {
	r := newServer(t, Config{}, fakeService)
	r.epoch = 0xbad
	r.sealed(1, 1, 0, "abcd")
	if p := r.only(wire.TypeAbort); code(p) != int32(fakeRefused) || len(r.conns) != 0 {
		t.Errorf("sent: %v", &p.Header)
	}
}

// A client answers a challenge while a call is outstanding, with the numbers of its calls,
// and four times in two seconds at most.
func TestClientAnswersChallenges(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{Security: fakeClient{}})
	challenge := func() {
		t.Helper()
		h := r.header(wire.TypeChallenge)
		h.Call = 0
		r.says(h, []byte{0, 0, 0, 7})
	}
	challenge()
	p := r.only(wire.TypeResponse)
	if p.Call != 0 || p.Seq != 0 || p.Flags != wire.FlagClient || p.Security != fakeIndex {
		t.Errorf("sent: %v", &p.Header)
	}
	if string(p.body) != "\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("the response is %x", p.body)
	}
	for range 10 {
		challenge()
	}
	if sent := r.take(); len(sent) != 3 {
		t.Errorf("%d responses more", len(sent))
	}
	k.Abort(r.at, 1)
	k.End(r.at)
	r.take()
	r.pass(challengeWait)
	challenge()
	r.quiet() // nothing is under way
	next := r.begin(k.c)
	if next.Channel() != 1 {
		t.Fatalf("the call is on channel %d", next.Channel())
	}
	challenge()
	// The call on channel 0 is over: the next one there counts.
	if p := r.only(wire.TypeResponse); string(p.body[4:12]) != "\x00\x00\x00\x02\x00\x00\x00\x01" {
		t.Errorf("the response is %x", p.body)
	}
	r.pass(challengeWait)
	h := r.header(wire.TypeChallenge)
	h.Call = 0
	r.says(h, []byte{1})
	if p := r.only(wire.TypeAbort); code(p) != int32(fakeRefused) {
		t.Errorf("sent: %v", &p.Header)
	}
}

// A client without a security class that is challenged gives up.
func TestChallengeWithoutClass(t *testing.T) {
	r, k := newClient(t, Config{}, DialConfig{})
	r.write(k, 4, true)
	r.take()
	h := r.header(wire.TypeChallenge)
	h.Call = 0
	r.says(h, []byte{0, 0, 0, 7})
	if p := r.only(wire.TypeAbort); code(p) != int32(codeNoClass) || p.Call != 0 {
		t.Errorf("sent: %v", &p.Header)
	}
	fails(t, k.Err(), codeNoClass, false)
}

// Unauthenticated callers' data have a memory of their own.
func TestUnverifiedMemory(t *testing.T) {
	r := newServer(t, Config{Unverified: 512}, fakeService)
	r.sealed(1, 1, 0, "abcd")
	r.sealed(1, 2, 0, "efgh")
	r.take()
	r.sealed(1, 3, 0, "ijkl")
	if a := r.onlyAck(wire.ReasonNoSpace); a.Count != 2 || r.stats.Drops.NoSpace != 1 {
		t.Errorf("sent: %v", &a)
	}
}

// A service that asks for a sign of life gets it before its first call is served: a ping, every
// two seconds, until it is answered. Then callers from there need none for a minute.
func TestReachability(t *testing.T) {
	r := newServer(t, Config{}, Service{Reach: true})
	r.at = time.Second
	r.data(1, wire.FlagLast, "abcd")
	r.pass(5 * time.Second)
	sent := r.take()
	if at := pings(sent); len(at) != 3 || at[0] != r.at-5*time.Second || at[1] != at[0]+reachWait || at[2] != at[1]+reachWait || len(r.calls) != 0 {
		t.Fatalf("pings at %v, %d calls", at, len(r.calls))
	}
	r.acks(wire.ReasonIdle, 1, 0, "")
	if len(r.calls) != 0 {
		t.Error("an acknowledgement counts as an answer")
	}
	r.acks(wire.ReasonPingResponse, 1, sent[0].Serial, "")
	if len(r.calls) != 1 {
		t.Fatal("the call is not served")
	}
	second := func(cid uint32) int {
		before := len(r.calls)
		r.cid = cid
		r.data(1, wire.FlagLast, "abcd")
		return len(r.calls) - before
	}
	if second(testCID+4) != 1 {
		t.Error("the second call waits")
	}
	r.pass(reachMemory)
	if second(testCID+8) != 0 {
		t.Error("a call after a minute does not wait")
	}
}
