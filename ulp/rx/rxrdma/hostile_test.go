package rxrdma_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/stag"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma"
	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/rxtest"
)

// A raw peer is a queue pair that says whatever a test wants.
type raw struct {
	t    testing.TB
	dev  *rnic.Device
	pd   *rnic.PD
	cq   *rnic.CQ
	qp   *rnic.QP
	mem  []byte
	mr   *rnic.MR
	peer wire.Private
}

const rawSlot, rawSlots = 64 << 10, 64

// newRaw makes a queue pair with receives.
func newRaw(t testing.TB) *raw {
	t.Helper()
	r := &raw{t: t, dev: device(t, rnic.Config{Name: "raw"}), mem: make([]byte, rawSlot*rawSlots)}
	var err error
	if r.pd, err = r.dev.AllocPD(); err != nil {
		t.Fatal(err)
	}
	if r.cq, err = r.dev.CreateCQ(rnic.CQAttr{Entries: 1 << 14}); err != nil {
		t.Fatal(err)
	}
	if r.qp, err = r.pd.CreateQP(rnic.QPAttr{SendCQ: r.cq, RecvCQ: r.cq, MaxRecvWR: rawSlots, MaxSendWR: 1 << 12}); err != nil {
		t.Fatal(err)
	}
	if r.mr, err = r.pd.Register(r.mem, rnic.LocalWrite|rnic.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	for i := range rawSlots {
		r.post(i)
	}
	return r
}

func (r *raw) post(i int) {
	_ = r.qp.PostRecv(rnic.RecvWR{ID: 1<<63 | uint64(i), SGL: []rnic.SGE{r.mr.SGE(i*rawSlot, rawSlot)}})
}

// request is what a client says of itself.
func request(service uint16) wire.Private {
	return wire.Private{
		Features: wire.FeatureOffer | wire.FeaturePlace, Service: service, Epoch: 1 << 31, ConnID: 4, Channels: 4, Credits: rawSlots,
		Window: 8, Receive: rawSlot, Bulk: 1 << 20,
	}
}

// connect connects to a server.
func (r *raw) connect(e *rxrdma.Endpoint, private []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := r.qp.Connect(ctx, e.Addr().String(), rnic.ConnParam{PrivateData: private})
	if err == nil {
		params, _ := r.qp.Params()
		r.peer, err = wire.ParsePrivate(params.PrivateData)
	}
	return err
}

// send sends a message.
func (r *raw) send(m wire.Message, body string) {
	b := make([]byte, wire.MaxFixed)
	r.bytes(append(b[:m.Put(b)], body...))
}

func (r *raw) bytes(b []byte) {
	if len(b) <= rnic.DefaultInline {
		_ = r.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: b})
		return
	}
	mr, err := r.pd.Register(b, 0)
	if err == nil {
		_ = r.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, len(b))}})
	}
}

// next waits for the next message that is not about credits; nil at the end.
func (r *raw) next() *wire.Message {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wcs [1]rnic.WC
	for {
		if _, err := r.cq.Wait(ctx, wcs[:]); err != nil {
			r.t.Error("the peer goes on")
			return nil
		}
		wc := wcs[0]
		if wc.ID>>63 == 0 {
			continue
		}
		if wc.Status != rnic.StatusSuccess {
			return nil
		}
		i := int(wc.ID &^ (1 << 63))
		m, _, err := wire.Parse(r.mem[i*rawSlot:][:wc.ByteLen])
		if err != nil {
			r.t.Error(err)
		}
		r.post(i)
		if m.Type != wire.Credit && m.Type != wire.Window {
			return &m
		}
	}
}

// ended waits for the end of the connection.
func (r *raw) ended() {
	for r.next() != nil {
	}
}

// echoes checks that a server continues with others.
func echoes(t testing.TB, e *rxrdma.Endpoint) {
	t.Helper()
	client := endpoint(t, device(t, rnic.Config{Name: "another"}), rxrdma.Config{})
	conn := connect(t, client, e, rxtest.Echo)
	k, err := conn.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	if err := k.CloseWrite(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(k); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	_ = k.Close()
}

// What a hostile client does costs its connection, and nothing else.
func TestHostileClientsLoseTheirConnections(t *testing.T) {
	data := func(call, seq uint32) wire.Message { return wire.Message{Type: wire.Data, Call: call, Seq: seq} }
	for _, tt := range []struct {
		name string
		rule string
		do   func(r *raw)
	}{
		{"a short message", "format", func(r *raw) { r.bytes([]byte{1}) }},
		{"an empty message", "format", func(r *raw) { r.bytes(nil) }},
		{"a message of no type", "format", func(r *raw) { r.send(wire.Message{Type: 77}, "") }},
		{"a message longer than a receive", "transport", func(r *raw) { r.send(data(1, 1), string(make([]byte, rawSlot+1000))) }},
		{"an unknown channel", "channel", func(r *raw) {
			m := data(1, 1)
			m.Channel = 4
			r.send(m, "x")
		}},
		{"beyond the window", "window", func(r *raw) {
			for seq := range uint32(20) {
				r.send(data(1, seq+1), "x")
			}
		}},
		{"a part too many", "sequence", func(r *raw) {
			m := data(1, 1)
			m.Flags = wire.FlagLast
			r.send(m, "x")
			r.send(data(1, 2), "x")
		}},
		{"a call amid a call", "call", func(r *raw) {
			r.send(data(1, 1), "x")
			r.send(data(2, 1), "x")
		}},
		{"a response that nobody asked for", "security", func(r *raw) { r.send(wire.Message{Type: wire.Response}, "x") }},
		{"an offer too long", "offer", func(r *raw) {
			r.send(data(1, 1), "x")
			r.send(wire.Message{Type: wire.Offer, Call: 1, Seq: 1, Length: 1 << 31}, "")
		}},
		{"what was not offered", "placed", func(r *raw) {
			r.send(data(1, 1), "x")
			r.send(wire.Message{Type: wire.Placed, Call: 1, Seq: 2, Length: 100}, "")
		}},
		{"a Write to an STag of nobody", "transport", func(r *raw) {
			_ = r.qp.PostSend(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{r.mr.SGE(0, 100)}, Remote: rnic.Remote{STag: stag.Make(5, 5)}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reported := make(chan rxrdma.Violation, 10)
			// Its handler reads nothing, so that the window stays as it is.
			deaf := rx.Service{ID: 1, Handler: rx.HandlerFunc(func(ctx context.Context, _ rx.ServerCall) error {
				<-ctx.Done()
				return nil
			})}
			e := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{
				Addr: loopback4, Services: append(rxtest.Services(), deaf), Report: func(v rxrdma.Violation) { reported <- v },
			})
			r := newRaw(t)
			if err := r.connect(e, append(p(request(1)), 0)); err != nil {
				t.Fatal(err)
			}
			tt.do(r)
			r.ended()
			select {
			case v := <-reported:
				if v.Rule.String() != tt.rule || !v.Peer.IsValid() {
					t.Errorf("the rule is %v of %v: %v", v.Rule, v.Peer, v.Err)
				}
				if e.Stats().Violations[v.Rule] != 1 {
					t.Errorf("%+v", e.Stats())
				}
			case <-time.After(time.Minute):
				t.Error("nothing is reported")
			}
			echoes(t, e)
		})
	}
}

func p(v wire.Private) []byte { return v.Append(nil) }

// A client that offers memory which is not open has its connection ended when the server
// writes there; the handler's call fails.
func TestBogusOffersCostTheirConnection(t *testing.T) {
	failed := make(chan error, 1)
	services := append(rxtest.Services(), rx.Service{ID: 1, Handler: rx.HandlerFunc(func(_ context.Context, c rx.ServerCall) error {
		if _, err := io.ReadAll(c); err != nil {
			return err
		}
		for {
			if _, err := c.Write(make([]byte, 1<<20)); err != nil {
				failed <- err
				return err
			}
		}
	})})
	e := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{Addr: loopback4, Services: services})
	r := newRaw(t)
	if err := r.connect(e, p(request(1))); err != nil {
		t.Fatal(err)
	}
	r.send(wire.Message{Type: wire.Data, Call: 1, Seq: 1}, "x")
	r.send(wire.Message{Type: wire.Demand, Flags: wire.FlagLarge, Call: 1}, "")
	r.send(wire.Message{Type: wire.Offer, Call: 1, Seq: 1, Length: 1 << 20, STag: uint32(stag.Make(77, 1))}, "")
	r.send(wire.Message{Type: wire.Data, Flags: wire.FlagLast, Call: 1, Seq: 2}, "")
	r.ended()
	if code, ok := rxtest.Code(<-failed); !ok || code != -1 {
		t.Errorf("the code is %d", code)
	}
	echoes(t, e)
}

// What comes with a request is judged before anything is made for it.
func TestBadRequestsAreRefused(t *testing.T) {
	e := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{Addr: loopback4, Services: rxtest.Services()})
	change := func(f func(v *wire.Private)) []byte {
		v := request(rxtest.Echo)
		f(&v)
		return p(v)
	}
	version := p(request(rxtest.Echo))
	version[4] = 9
	for _, tt := range []struct {
		name    string
		private []byte
		code    int32
	}{
		{"nothing", nil, -5},
		{"another protocol", make([]byte, 40), -5},
		{"another version", version, -5},
		{"cut short", p(request(rxtest.Echo))[:20], -5},
		{"no channels", change(func(v *wire.Private) { v.Channels = 0 }), -5},
		{"too few credits", change(func(v *wire.Private) { v.Credits = 33 }), -5},
		{"no such service", p(request(999)), -2},
		{"no such class", change(func(v *wire.Private) { v.Security = 7 }), -2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRaw(t)
			err := r.connect(e, tt.private)
			rejected, ok := errors.AsType[*mpa.RejectedError](err)
			if !ok {
				t.Fatalf("the request ends with %v", err)
			}
			if code, err := wire.ParseRefusal(rejected.PrivateData); err != nil || code != tt.code {
				t.Errorf("the code is %d, %v", code, err)
			}
		})
	}
	echoes(t, e)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if s := e.Stats(); s.Refused != 8 || s.Accepted != 1 || s.Conns != 0 || s.Memory != 0 {
		t.Errorf("%+v", s)
	}
}

// Connections are bounded in number and in memory: those that are too many are refused.
func TestFloodsOfConnectionsAreBounded(t *testing.T) {
	e := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{Addr: loopback4, Services: rxtest.Services(), MaxConns: 5, Receive: 1024})
	var made []*raw
	refused := 0
	for range 12 {
		r := newRaw(t)
		err := r.connect(e, p(request(rxtest.Echo)))
		rejected, ok := errors.AsType[*mpa.RejectedError](err)
		switch {
		case err == nil:
			made = append(made, r)
		case !ok:
			t.Fatal(err)
		default:
			refused++
			if code, err := wire.ParseRefusal(rejected.PrivateData); err != nil || code != -100 {
				t.Errorf("the code is %d, %v", code, err)
			}
		}
	}
	if len(made) != 5 || refused != 7 {
		t.Errorf("%d connections, %d refused", len(made), refused)
	}
	if s := e.Stats(); s.Conns != 5 || s.Memory != 5*50*1024 {
		t.Errorf("%+v", s)
	}
	for _, r := range made {
		r.qp.Abort()
	}
	client := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{})
	for { // until the server has noticed
		conn, err := client.Dial(t.Context(), e.Addr(), rxtest.Echo, rx.DialConfig{})
		if err == nil {
			if err := say(conn); err != nil {
				t.Error(err)
			}
			break
		}
		if code, ok := rxtest.Code(err); !ok || code != -100 {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if s := e.Stats(); s.Memory != 0 {
		t.Errorf("%+v", s)
	}
}

// Connections without a request, and those that end in the middle of one, hold up nobody.
func TestStreamsThatSayNothingHoldUpNobody(t *testing.T) {
	e := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{Addr: loopback4, Services: rxtest.Services()})
	for i := range 20 {
		c, err := net.Dial("tcp", e.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, _ = c.Write([]byte("MPA ID Req F"))
		}
		defer c.Close()
	}
	echoes(t, e)
}

// A client that never takes what it is sent has its calls and its connection ended.
func TestAClientThatTakesNothingIsCutOff(t *testing.T) {
	services := rxtest.Services()
	for i := range services {
		if services[i].ID == rxtest.Source { // not that of the client that does as it should
			services[i].DeadTime = 200 * time.Millisecond
		}
	}
	e := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{Addr: loopback4, Services: services})
	r := newRaw(t)
	if err := r.connect(e, p(request(rxtest.Source))); err != nil {
		t.Fatal(err)
	}
	r.send(wire.Message{Type: wire.Data, Flags: wire.FlagLast, Call: 1, Seq: 1}, "\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00")
	r.ended() // it answers no PING
	echoes(t, e)
}

// A peer can't write to the slice of a Read that has returned: the STag is closed.
func TestMemoryIsClosedWhenReadReturns(t *testing.T) {
	got := make(chan []byte, 1)
	services := append(rxtest.Services(), rx.Service{ID: 1, Handler: rx.HandlerFunc(func(_ context.Context, c rx.ServerCall) error {
		buf := make([]byte, 100_000)
		n, err := c.Read(buf)
		got <- buf[:n]
		if err == nil {
			_, err = c.Read(buf[:10])
		}
		return err
	})})
	e := endpoint(t, device(t, rnic.Config{}), rxrdma.Config{Addr: loopback4, Services: services})
	r := newRaw(t)
	if err := r.connect(e, p(request(1))); err != nil {
		t.Fatal(err)
	}
	r.send(wire.Message{Type: wire.Data, Call: 1, Seq: 1}, "")
	offer := r.next()
	if offer == nil || offer.Type != wire.Offer || offer.Seq != 2 || offer.Length != 100_000 {
		t.Fatalf("the server sends %v", offer)
	}
	at := rnic.Remote{STag: stag.STag(offer.STag), TO: offer.TO}
	write := rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{r.mr.SGE(0, 10)}, Remote: at}
	copy(r.mem, "0123456789")
	_ = r.qp.PostSend(write)
	r.send(wire.Message{Type: wire.Placed, Call: 1, Seq: 2, Length: 10}, "")
	buf := <-got
	if string(buf) != "0123456789" {
		t.Errorf("%q was read", buf)
	}
	copy(r.mem, "XXXXXXXXXX")
	_ = r.qp.PostSend(write)
	r.ended() // the peer's RNIC has refused it
	if string(buf) != "0123456789" {
		t.Errorf("%q was read, and overwritten", buf)
	}
	echoes(t, e)
}

// FuzzServer gives a server that is served by others as well the messages of a hostile client.
func FuzzServer(f *testing.F) {
	e := endpoint(f, device(f, rnic.Config{}), rxrdma.Config{Addr: loopback4, Services: rxtest.Services(), MaxConns: 64, Receive: 2048})
	f.Add([]byte{16, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1})
	f.Add([]byte{1, 1})
	var once sync.Mutex
	f.Fuzz(func(t *testing.T, script []byte) {
		once.Lock()
		defer once.Unlock()
		r := newRaw(t)
		if err := r.connect(e, p(request(rxtest.Echo))); err != nil {
			echoes(t, e) // it is refused, as there are too many connections: others are served all the same
			return
		}
		for len(script) > 0 {
			n := min(int(script[0]), len(script)-1)
			r.bytes(script[1:][:n])
			script = script[1+n:]
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = r.qp.Disconnect(ctx)
		echoes(t, e)
	})
}
