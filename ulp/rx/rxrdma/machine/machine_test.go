package machine

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rx/rxrdma/wire"
	rxwire "urnic/ulp/rx/wire"
)

// read reads what has come.
func read(t testing.TB, s *side, k *Call) string {
	t.Helper()
	var all []byte
	buf := make([]byte, 300)
	for {
		n, err := k.Read(*s.now, buf)
		all = append(all, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return string(all) + "."
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return string(all)
		}
	}
}

func TestAShortCallIsTwoMessages(t *testing.T) {
	client, server := pair(t)
	client.silent() // but for credits: the client speaks first
	k := client.begin("ask")
	client.want("DATA call=1/0 seq=1 LAST")
	client.silent()
	s := server.begun[0]
	if got := read(t, server, s); got != "ask." {
		t.Errorf("the request is %q", got)
	}
	if _, err := s.Write(*server.now, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	server.silent()
	s.End(*server.now)
	server.want("DATA call=1/0 seq=1 LAST")
	server.silent()
	if got := read(t, client, k); got != "answer." {
		t.Errorf("the reply is %q", got)
	}
	k.End(*client.now)
	client.silent()
	if client.c.Active() != 0 || server.c.Active() != 0 || k.Number() != 1 || k.Channel() != 0 || k.Conn() != client.c {
		t.Errorf("%d and %d calls are left", client.c.Active(), server.c.Active())
	}
	client.begin("")
	client.want("DATA call=2/0 seq=1 LAST")
}

func TestTheClientSpeaksFirst(t *testing.T) {
	client, _ := pair(t)
	client.pull()
	if client.sent.Len() != 1 || client.sent.At(0).message[0] != byte(wire.Credit) {
		t.Fatalf("%d messages", client.sent.Len())
	}
}

func TestNoMorePartsAreSentThanTheWindowHas(t *testing.T) {
	client, server := pair(t)
	k, err := client.c.Begin(0)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 512)
	n, err := k.Write(0, data)
	if err != nil || n != 5*512 { // 4 are sent, and one is held
		t.Fatalf("%d bytes were taken, %v", n, err)
	}
	client.settle()
	s := server.begun[0]
	if m, err := k.Write(0, data[n:]); m != 0 || err != nil {
		t.Fatalf("%d more bytes were taken, %v", m, err)
	}
	buf := make([]byte, 600)
	if m, _ := s.Read(0, buf); m != 600 { // one part, and some of the next
		t.Fatalf("%d bytes were read", m)
	}
	server.silent()
	if m, _ := s.Read(0, buf); m != 600 {
		t.Fatalf("%d bytes were read", m)
	}
	server.want("WINDOW call=1/0 seq=2")
	if m, err := k.Write(0, data[n:]); m != 2*512 || err != nil {
		t.Errorf("%d more bytes were taken, %v", m, err)
	}
}

func TestBulkIsWrittenToTheReader(t *testing.T) {
	client, server := pair(t)
	k := client.begin("get")
	client.settle()
	s := server.begun[0]
	read(t, server, s)
	// The reader waits with much room.
	p := make([]byte, 3000)
	if k.MayOffer(999) != 0 || k.MayOffer(3000) != 3000 || k.MayOffer(10_000) != 4096 {
		t.Error("offers are not of the length that is wanted")
	}
	client.memory[7] = p
	if !k.Offer(0, 7, 0, len(p)) || k.Offer(0, 7, 0, len(p)) {
		t.Fatal("one offer is made at a time")
	}
	client.want("OFFER call=1/0 seq=1 stag=0x00000007 length=3000 to=0x0")
	data := bytes.Repeat([]byte("bulk"), 700)
	if s.Offered(500) != 0 || s.Offered(9000) != 3000 || s.Offered(2800) != 2800 {
		t.Error("the offer is not used as it should be")
	}
	pl := &Place{Len: len(data), Ref: data}
	if !s.Place(0, pl) || s.Offered(3000) != 0 {
		t.Fatal("an offer is used once")
	}
	server.want("PLACED call=1/0 seq=1 length=2800")
	if o := k.Offering(); o.State != Filled || o.Filled != 2800 || !bytes.Equal(p[:2800], data) || !pl.Over {
		t.Errorf("the offer is %+v", o)
	}
	k.Taken()
	// A long Write waits for the next offer; a short one goes at once.
	if n, err := s.Write(0, data); n != 0 || err != nil {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	if n, err := s.Write(0, data[:10]); n != 10 || err != nil {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	if n, err := s.Write(0, data); n != 0 || err != nil {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	server.want("DATA call=1/0 seq=2")
	read(t, client, k)
	// A reader that waits with little room says so, and gets messages.
	k.Wait(0, 100)
	client.want("WINDOW call=1/0 seq=2")
	client.want("DEMAND call=1/0")
	if n, err := s.Write(0, data); n != 2560 || err != nil {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
	k.Wait(0, 100)
	server.want("DATA call=1/0 seq=3")
	client.silent()
	// One that finds data, and has much room, wants no more messages.
	if n, _ := k.Read(0, p); n != 512 {
		t.Errorf("%d bytes were read", n)
	}
	client.want("DEMAND call=1/0 LARGE")
	if n, err := s.Write(0, data); n != 0 || err != nil {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
}

func TestAnOfferThatIsLateIsVoid(t *testing.T) {
	client, server := pair(t)
	k := client.begin("get")
	client.settle()
	s := server.begun[0]
	if _, err := s.Write(0, make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	server.pull() // the part is on its way
	client.memory[7] = make([]byte, 3000)
	if !k.Offer(0, 7, 0, 3000) {
		t.Fatal("no offer is made")
	}
	client.settle()
	if o := k.Offering(); o.State != Void {
		t.Errorf("the offer is %+v", o)
	}
	delete(client.memory, 7)
	k.Taken()
	if s.Offered(3000) != 0 {
		t.Error("an offer for a part that was sent is used")
	}
	if n, _ := s.Write(0, make([]byte, 3000)); n != 0 {
		t.Error("the writer does not wait for the next offer")
	}
}

func TestAnAbortEndsBothDirections(t *testing.T) {
	for _, which := range []string{"the client", "the server"} {
		t.Run(which, func(t *testing.T) {
			client, server := pair(t)
			k, err := client.c.Begin(0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := k.Write(0, make([]byte, 512)); err != nil {
				t.Fatal(err)
			}
			client.settle()
			s := server.begun[0]
			if which == "the client" {
				k.Abort(0, 77)
				if client.c.Active() != 1 {
					t.Error("the channel is free before the server knows")
				}
				client.want("ABORT call=1/0 code=77")
				server.want("ABORT call=1/0 code=77")
			} else {
				s.Abort(0, 77)
				server.want("ABORT call=1/0 code=77")
				client.want("ABORT call=1/0 code=77")
			}
			for _, c := range []*Call{k, s} {
				if a, ok := errors.AsType[*AbortError](c.Err()); !ok || a.AbortCode() != 77 || a.Error() == "" {
					t.Errorf("a call has ended with %v", c.Err())
				}
				if _, err := c.Write(0, nil); err == nil {
					t.Error("something was written")
				}
			}
			if client.c.Active()+server.c.Active() != 0 || client.failed != 1 || server.failed != 1 {
				t.Errorf("%d and %d calls are left", client.c.Active(), server.c.Active())
			}
			client.silent()
			server.silent()
			server.posted += len(server.free)
			if server.posted != int(limits.Credits) || client.buffers+server.buffers != 0 {
				t.Errorf("%d receives, %d buffers", server.posted, client.buffers+server.buffers)
			}
		})
	}
}

func TestACallThatSentNothingIsAbortedInSilence(t *testing.T) {
	client, server := pair(t)
	k, err := client.c.Begin(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(0, []byte("held")); err != nil {
		t.Fatal(err)
	}
	k.Abort(0, -6)
	client.silent()
	if client.c.Active() != 0 || client.buffers != 0 {
		t.Error("the call is still there")
	}
	// One whose parts were queued, and never sent, is known to the server by its ABORT only.
	k = client.begin("x")
	k.Abort(0, -6)
	client.want("ABORT call=2/0 code=-6")
	server.want("ABORT call=2/0 code=-6")
	if client.c.Active() != 0 || len(server.begun) != 0 || client.buffers != 0 {
		t.Error("the call is still there")
	}
}

func TestAWriteThatWasNotBegunIsGivenUpWithItsCall(t *testing.T) {
	client, server := pair(t)
	k := client.begin("get")
	client.settle()
	s := server.begun[0]
	client.memory[7] = make([]byte, 3000)
	k.Offer(0, 7, 0, 3000)
	client.settle()
	pl := &Place{Len: 3000, Ref: make([]byte, 3000)}
	if !s.Place(0, pl) {
		t.Fatal("the offer is not used")
	}
	s.Abort(0, 5)
	server.want("ABORT call=1/0 code=5")
	if !pl.Over || k.Offering().State != Void {
		t.Error("the Write is not over")
	}
}

func TestAPeerThatDoesNotGiveMemoryBackIsCutOff(t *testing.T) {
	client, server := pair(t)
	k := client.begin("get")
	client.settle()
	k.Offer(0, 7, 0, 3000)
	client.settle()
	k.Abort(0, -6)
	client.pull() // and the server never answers
	at, ok := client.c.Deadline()
	if !ok || at != releaseWait {
		t.Fatalf("the deadline is %v, %t", at, ok)
	}
	*client.now = at
	client.c.Advance(at)
	client.broke(RuleOffer)
	if k.Offering().State != Void {
		t.Error("the offer still stands")
	}
	_ = server
}

func TestTheLastCreditIsKeptForCredits(t *testing.T) {
	small := func(c, s *Config) {
		for _, p := range []*wire.Private{&c.Own, &c.Peer, &s.Own, &s.Peer} {
			p.Credits, p.Channels, p.Window = 4, 1, 1
		}
	}
	client, server := pair(t, small)
	client.settle()
	for i := range 20 {
		client.c.pingDue = true
		client.pull()
		if i == 0 && client.c.credits < 1 {
			t.Error("the last credit is gone")
		}
	}
	client.settle()
	if client.c.Err() != nil || server.c.Err() != nil || client.c.credits < 2 || server.c.credits < 2 {
		t.Errorf("%v, %v; %d and %d credits", client.c.Err(), server.c.Err(), client.c.credits, server.c.credits)
	}
}

func TestASilentPeerIsAskedAndThenGivenUp(t *testing.T) {
	client, server := pair(t)
	k := client.begin("ask")
	client.settle()
	*client.now = 2 * time.Second
	client.c.Advance(2 * time.Second)
	client.want("PING seq=1")
	server.want("PONG seq=1")
	for {
		at, ok := client.c.Deadline()
		if !ok {
			break
		}
		*client.now = at
		client.c.Advance(at)
	}
	if *client.now != 14*time.Second {
		t.Errorf("it was given up at %v", *client.now)
	}
	if a, ok := errors.AsType[*AbortError](k.Err()); !ok || a.Code != rxwire.CallDead || !a.Conn || !strings.Contains(a.Error(), "heard") {
		t.Errorf("the call has ended with %v", k.Err())
	}
	if _, err := client.c.Begin(0); err == nil {
		t.Error("a call was begun")
	}
}

func TestCallsEndInTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c, _ *Config)
	}{
		{"idle", func(c, _ *Config) { c.IdleDead = 3 * time.Second }},
		{"hard", func(c, _ *Config) { c.HardDead = 3 * time.Second }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server := pair(t, tt.change)
			k := client.begin("ask")
			client.settle()
			for k.Err() == nil {
				at, _ := client.c.Deadline()
				*client.now = at
				client.c.Advance(at)
				client.settle()
			}
			if a, _ := errors.AsType[*AbortError](k.Err()); *client.now != 3*time.Second || a.Code != rxwire.CallTimeout {
				t.Errorf("it ends with %v at %v", k.Err(), *client.now)
			}
			if server.begun[0].Err() == nil || client.c.Active() != 0 {
				t.Error("the server's call goes on")
			}
		})
	}
}

func TestALostConnectionFailsCallsButThoseThatAreWhole(t *testing.T) {
	client, server := pair(t)
	whole, cut := client.begin("a"), client.begin("b")
	client.settle()
	server.begun[0].End(0)
	if _, err := server.begun[1].Write(0, make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	server.settle()
	client.c.Lost(0, errors.New("gone"))
	if got := read(t, client, whole); got != "." {
		t.Errorf("the call that is whole: %q", got)
	}
	if a, ok := errors.AsType[*AbortError](cut.Err()); !ok || a.Code != rxwire.CallDead {
		t.Errorf("the other one: %v", cut.Err())
	}
	if _, ok := client.c.Deadline(); ok {
		t.Error("there is a deadline")
	}
	client.c.Advance(time.Hour)
	client.silent()
}

func TestAnEarlyReplyEndsTheRequest(t *testing.T) {
	client, server := pair(t)
	k, err := client.c.Begin(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(0, make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	client.settle()
	s := server.begun[0]
	if _, err := s.Write(0, []byte("enough")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(0, make([]byte, 1)); !errors.Is(err, ErrEnded) {
		t.Errorf("the request is still read: %v", err)
	}
	s.End(0)
	server.settle()
	if n, err := k.Write(0, make([]byte, 100_000)); n != 100_000 || err != nil {
		t.Errorf("%d bytes were dropped, %v", n, err)
	}
	if err := k.CloseWrite(0); err != nil {
		t.Error(err)
	}
	if got := read(t, client, k); got != "enough." {
		t.Errorf("the reply is %q", got)
	}
	client.settle()
	if client.c.Active()+server.c.Active() != 0 || client.buffers+server.buffers != 0 {
		t.Error("something is left")
	}
}

func TestClosingLetsCallsEnd(t *testing.T) {
	client, server := pair(t)
	k := client.begin("a")
	client.settle()
	server.c.Close(0)
	server.c.Close(0)
	server.want("CLOSING")
	server.silent()
	if !client.c.PeerClosing() || !client.c.Closing() || !server.c.Closing() {
		t.Error("they do not close")
	}
	if _, err := client.c.Begin(0); !errors.Is(err, ErrClosing) {
		t.Errorf("another call: %v", err)
	}
	server.begun[0].End(0)
	server.settle()
	if got := read(t, client, k); got != "." {
		t.Errorf("the reply is %q", got)
	}
}

func TestChannelsAreBounded(t *testing.T) {
	client, _ := pair(t)
	for range limits.Channels {
		client.begin("a")
	}
	if _, err := client.c.Begin(0); !errors.Is(err, ErrNoChannel) {
		t.Errorf("a fifth call: %v", err)
	}
	client.settle()
	client.c.AbortAll(0, -6)
	client.settle()
	if client.c.Active() != 0 {
		t.Error("calls are left")
	}
}

// What was not read holds the channel, and so its receives.
func TestAReplyThatWasNotReadHoldsItsChannel(t *testing.T) {
	client, server := pair(t)
	k := client.begin("a")
	client.settle()
	if _, err := server.begun[0].Write(0, []byte("reply")); err != nil {
		t.Fatal(err)
	}
	server.begun[0].End(0)
	server.settle()
	if client.c.Active() != 1 || server.c.Active() != 0 {
		t.Errorf("%d calls at the client, %d at the server", client.c.Active(), server.c.Active())
	}
	k.End(0)
	client.settle()
	if client.c.Active() != 0 {
		t.Error("the call is left")
	}
}
