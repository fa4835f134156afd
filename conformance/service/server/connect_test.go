package server

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"testing"

	"urnic/conformance/service"
	"urnic/internal/test/loopback"
	"urnic/mpa"
)

func TestStartupParametersReachBothSides(t *testing.T) {
	address := serving(t, Options{})
	a, b := end{Client: dial(t, address)}, end{Client: dial(t, address)}
	accepted, connected := joined(t, &a, &b,
		service.ListenArgs{Start: service.Start{CRC: "off", Markers: true, IRD: new(7), ORD: new(0), PrivateData: []byte("reply"), RTR: []string{"send", "write"}}},
		service.ConnectArgs{Start: service.Start{CRC: "off", IRD: new(3), ORD: new(9), PrivateData: []byte("request"), RTR: []string{"write", "read"}}, PeerToPeer: true})
	r := accepted.Request
	if r.Revision != 2 || r.CRC || r.Markers || !r.Enhanced || r.IRD != 3 || r.ORD != 9 || !r.PeerToPeer ||
		!slices.Equal(r.RTR, []string{"write", "read"}) || string(r.PrivateData) != "request" {
		t.Errorf("request %+v", r)
	}
	p := accepted.Params
	if p.Role != "responder" || p.CRC || !p.MarkersReceived || p.MarkersSent || p.IRD != 7 || p.ORD != 0 || p.PeerORD != 9 {
		t.Errorf("the responder has %+v", p)
	}
	p = &connected.Params
	if p.Role != "initiator" || p.CRC || p.MarkersReceived || !p.MarkersSent || p.ORD != 7 ||
		!slices.Equal(p.RTR, []string{"write"}) || string(p.PrivateData) != "reply" {
		t.Errorf("the initiator has %+v", p)
	}
}

func TestRevision1AndULPDepths(t *testing.T) {
	address := serving(t, Options{})
	for _, c := range []service.ConnectArgs{{Revision: 1}, {ULPDepths: true}} {
		a, b := end{Client: dial(t, address)}, end{Client: dial(t, address)}
		accepted, connected := joined(t, &a, &b, service.ListenArgs{}, c)
		if accepted.Request.Revision != 1 || accepted.Request.Enhanced || connected.Params.Revision != 1 {
			t.Errorf("%+v: request %+v, params %+v", c, accepted.Request, connected.Params)
		}
	}
}

func TestListenerAcceptsManyConnections(t *testing.T) {
	address := serving(t, Options{})
	b := dial(t, address)
	l := must(b.Listen(t.Context(), service.ListenArgs{Recvs: service.Recvs(1)}))(t)
	qps := make(map[int]bool)
	for range 3 {
		a := end{Client: dial(t, address)}
		a.qp = must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address}))(t).QP
		must(a.Connected(t.Context(), a.qp, patience))(t)
		acc := must(b.Accepted(t.Context(), l.Listener, patience))(t)
		if len(acc.IDs) != 1 || qps[acc.QP] {
			t.Errorf("accepted %+v", acc)
		}
		qps[acc.QP] = true
		a.posts(t, service.Post{Op: service.OpSend, Data: []byte{1}})
		end{b, acc.QP}.completes(t, service.RecvQueue, service.OpRecv)
	}
	check(t, b.CloseListener(t.Context(), l.Listener))
	_, err := b.Accepted(t.Context(), l.Listener, 0)
	refused(t, err, service.CodeUnknown)
	if _, err := net.DialTimeout("tcp", l.Address, patience); err == nil {
		t.Error("the listener still listens")
	}
}

func TestRejectionCarriesPrivateData(t *testing.T) {
	address := serving(t, Options{})
	a, b := dial(t, address), dial(t, address)
	l := must(b.Listen(t.Context(), service.ListenArgs{Answer: service.AnswerReject, Start: service.Start{PrivateData: []byte("no")}}))(t)
	qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address, Start: service.Start{PrivateData: []byte("please")}}))(t).QP
	_, err := a.Connected(t.Context(), qp, patience)
	if e := refused(t, err, service.CodeRejected); e.Failure.Class != service.ClassRejected || string(e.Failure.PrivateData) != "no" {
		t.Errorf("failure %+v", e.Failure)
	}
	acc := must(b.Accepted(t.Context(), l.Listener, patience))(t)
	if acc.QP != 0 || acc.Held != 0 || string(acc.Request.PrivateData) != "please" {
		t.Errorf("accepted %+v", acc)
	}
}

func TestHeldRequestIsAnsweredLater(t *testing.T) {
	address := serving(t, Options{})
	for _, answer := range []string{service.AnswerAccept, service.AnswerReject, service.AnswerDrop} {
		a, b := dial(t, address), dial(t, address)
		l := must(b.Listen(t.Context(), service.ListenArgs{Answer: service.AnswerHold}))(t)
		qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address, Revision: 2}))(t).QP
		held := must(b.Accepted(t.Context(), l.Listener, patience))(t)
		if held.Held == 0 || held.QP != 0 {
			t.Fatalf("accepted %+v", held)
		}
		_, err := a.Connected(t.Context(), qp, 0)
		refused(t, err, service.CodeTimeout)
		own := must(b.CreateQP(t.Context(), service.QPAttr{RecvDepth: 1}))(t)
		done := must(b.Answer(t.Context(), service.AnswerArgs{Held: held.Held, Answer: answer, QP: own.QP, PrivateData: []byte("late")}))(t)
		connected, err := a.Connected(t.Context(), qp, patience)
		switch answer {
		case service.AnswerAccept:
			check(t, err)
			if done.QP != own.QP || string(connected.Params.PrivateData) != "late" {
				t.Errorf("accepted %+v, connected %+v", done, connected)
			}
		case service.AnswerReject:
			refused(t, err, service.CodeRejected)
		case service.AnswerDrop:
			refused(t, err, service.CodeStartup)
		}
		_, err = b.Answer(t.Context(), service.AnswerArgs{Held: held.Held, Answer: answer})
		refused(t, err, service.CodeUnknown)
	}
}

func TestHeldRequestWhosePeerGoesIsReported(t *testing.T) {
	address := serving(t, Options{})
	a, b := dial(t, address), dial(t, address)
	l := must(b.Listen(t.Context(), service.ListenArgs{Answer: service.AnswerHold}))(t)
	qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address, Start: service.Start{PrivateData: []byte{9}}}))(t).QP
	held := must(b.Accepted(t.Context(), l.Listener, patience))(t)
	check(t, a.CloseQP(t.Context(), qp))
	_, err := b.Accepted(t.Context(), l.Listener, patience)
	e := refused(t, err, service.CodeStartup)
	if e.Peer != held.Peer || e.Request == nil || !bytes.Equal(e.Request.PrivateData, []byte{9}) {
		t.Errorf("error %+v", e)
	}
	_, err = b.Answer(t.Context(), service.AnswerArgs{Held: held.Held, Answer: service.AnswerAccept})
	refused(t, err, service.CodeUnknown)
}

func TestMalformedRequestIsReportedByItsListener(t *testing.T) {
	b := dial(t, serving(t, Options{}))
	other := must(b.Listen(t.Context(), service.ListenArgs{}))(t)
	l := must(b.Listen(t.Context(), service.ListenArgs{}))(t)
	c, err := net.Dial("tcp", l.Address)
	check(t, err)
	defer c.Close()
	_, err = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	check(t, err)
	_, err = b.Accepted(t.Context(), l.Listener, patience)
	e := refused(t, err, service.CodeStartup)
	if e.Failure == nil || e.Failure.MPACode != uint8(mpa.CodeStartup) || e.Failure.Clause == "" || e.Peer != c.LocalAddr().String() || e.Request != nil {
		t.Errorf("error %+v, failure %+v", e, e.Failure)
	}
	_, err = b.Accepted(t.Context(), other.Listener, 0)
	refused(t, err, service.CodeTimeout)
	if n := must(b.Counters(t.Context()))(t); n.Failed != 1 {
		t.Errorf("counters %+v", n)
	}
}

func TestInsufficientIRDIsReportedWithTheRequest(t *testing.T) {
	address := serving(t, Options{})
	a, b := dial(t, address), dial(t, address)
	l := must(b.Listen(t.Context(), service.ListenArgs{MinORD: 5}))(t)
	qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address, Start: service.Start{IRD: new(4)}}))(t).QP
	_, err := b.Accepted(t.Context(), l.Listener, patience)
	e := refused(t, err, service.CodeStartup)
	if e.Failure.MPACode != uint8(mpa.CodeInsufficientIRD) || e.Request.IRD != 4 {
		t.Errorf("error %+v, failure %+v", e, e.Failure)
	}
	_, err = a.Connected(t.Context(), qp, patience)
	refused(t, err, service.CodeRejected)
}

func TestConnectToNobodyIsANetworkError(t *testing.T) {
	a := dial(t, serving(t, Options{}))
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(loopback.Port(t)))
	qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: address}))(t).QP
	_, err := a.Connected(t.Context(), qp, patience)
	refused(t, err, service.CodeNetwork)
}

func TestConnectReachesOnlyTheHostThatAsks(t *testing.T) {
	a := dial(t, serving(t, Options{}))
	for address, code := range map[string]service.Code{
		"192.0.2.1:7": service.CodeForbidden, "[2001:db8::1]:7": service.CodeForbidden, "localhost:7": service.CodeRequest, "": service.CodeRequest,
	} {
		_, err := a.Connect(t.Context(), service.ConnectArgs{Address: address})
		refused(t, err, code)
	}
	free := newSession(&server{Options: Options{ConnectAnywhere: true}}, idleConn(t))
	check(t, free.may("192.0.2.1:7"))
}

// idleConn returns one end of a connection that nobody uses.
func idleConn(t *testing.T) net.Conn {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a
}

func TestReplyTimeoutEndsAStartup(t *testing.T) {
	address := serving(t, Options{})
	a, b := dial(t, address), dial(t, address)
	l := must(b.Listen(t.Context(), service.ListenArgs{Answer: service.AnswerHold}))(t)
	qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address, ReplyTimeout: 1, Revision: 2}))(t).QP
	_, err := a.Connected(t.Context(), qp, patience)
	refused(t, err, service.CodeStartup)
	if s := must(a.State(t.Context(), qp))(t); s.State != service.StateIdle {
		t.Errorf("state %+v", s)
	}
}

func TestConfigureHoldsForAllListeners(t *testing.T) {
	address := serving(t, Options{})
	a, b := dial(t, address), dial(t, address)
	check(t, b.Configure(t.Context(), service.ConfigureArgs{RequestTimeout: 1, Revision: 2, CloseTimeout: 100, AnswerTimeout: 50}))
	l := must(b.Listen(t.Context(), service.ListenArgs{}))(t)
	c, err := net.Dial("tcp", l.Address) // and is silent
	check(t, err)
	defer c.Close()
	_, err = b.Accepted(t.Context(), l.Listener, patience)
	refused(t, err, service.CodeStartup)
	qp := must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address, Revision: 1}))(t).QP
	_, err = b.Accepted(t.Context(), l.Listener, patience)
	refused(t, err, service.CodeStartup)
	_, err = a.Connected(t.Context(), qp, patience)
	refused(t, err, service.CodeStartup)
	refused(t, b.Configure(t.Context(), service.ConfigureArgs{}), service.CodeState)
}

func TestDisconnectReconnectsAfterwards(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	check(t, a.Disconnect(t.Context(), a.qp, patience))
	if e := must(b.Event(t.Context(), patience))(t); e.Type != service.EventClosed || e.QP != b.qp || e.Failure != nil {
		t.Errorf("event %+v", e)
	}
	b.becomes(t, service.StateIdle)
	l := must(b.Listen(t.Context(), service.ListenArgs{Answer: service.AnswerHold}))(t)
	must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address, Use: a.qp, Recvs: service.Recvs(1)}))(t)
	held := must(b.Accepted(t.Context(), l.Listener, patience))(t)
	must(b.Answer(t.Context(), service.AnswerArgs{Held: held.Held, Answer: service.AnswerAccept, QP: b.qp}))(t)
	must(a.Connected(t.Context(), a.qp, patience))(t)
	must(b.Post(t.Context(), b.qp, service.Post{Op: service.OpSend, Data: []byte{1}}))(t) // leaves after the initiator's first message
	must(b.Recv(t.Context(), b.qp, service.Recvs(0)...))(t)
	a.posts(t, service.Post{Op: service.OpSend})
	a.completes(t, service.RecvQueue, service.OpRecv)
}

func TestTerminateTellsBothSides(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(1)}, service.ConnectArgs{})
	check(t, a.Terminate(t.Context(), a.qp, patience))
	e := must(b.Event(t.Context(), patience))(t)
	if e.Type != service.EventTerminated || e.Failure.Class != service.ClassPeer || e.Failure.Terminate.Word() != 0 || e.Failure.Terminate.Direction != service.Received {
		t.Errorf("event %+v, failure %+v", e, e.Failure)
	}
	c := must(b.Completion(t.Context(), b.qp, service.RecvQueue, patience))(t)
	if c.Status != service.StatusFlushed {
		t.Errorf("completion %+v", c)
	}
	if s := must(a.State(t.Context(), a.qp))(t); s.State != service.StateError || s.Failure.Class != service.ClassAborted || s.Failure.Terminate.Direction != service.Sent {
		t.Errorf("state %+v, failure %+v", s, s.Failure)
	}
	check(t, a.Reset(t.Context(), a.qp))
	if s := must(a.State(t.Context(), a.qp))(t); s.State != service.StateIdle || s.Failure != nil || s.Params != nil {
		t.Errorf("state %+v", s)
	}
}

func TestProtectionErrorIsReportedWithItsHeaders(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	r := must(b.Register(t.Context(), service.RegisterArgs{Length: 8, Access: []string{service.LocalWrite, service.RemoteWrite}, Fill: 7}))(t)
	must(a.Post(t.Context(), a.qp, service.Post{Op: service.OpWrite, Data: []byte{1, 2}, Remote: r.Remote(7)}))(t)
	e := must(b.Event(t.Context(), patience))(t)
	if e.Type != service.EventProtection || e.Failure.Terminate.Word() != 0x1101 || e.Failure.Clause == "" || e.Failure.Class != service.ClassRDMAP {
		t.Fatalf("event %+v, failure %+v", e, e.Failure)
	}
	e = must(a.Event(t.Context(), patience))(t)
	term := e.Failure.Terminate
	if e.Type != service.EventTerminated || term.Word() != 0x1101 || len(term.DDPHeader) == 0 || term.SegmentLength == nil {
		t.Errorf("event %+v, Terminate %+v", e, term)
	}
	b.holds(t, r, 0, bytes.Repeat([]byte{7}, 8))
	if s := b.becomes(t, service.StateError); s.Received["rdma-write"].Messages != 0 || s.Sent["terminate"].Messages != 1 {
		t.Errorf("state %+v", s)
	}
}

func TestAbortResetsAndTheOtherSideHearsOfIt(t *testing.T) {
	a, b := pair(t, service.ListenArgs{}, service.ConnectArgs{})
	check(t, a.Abort(t.Context(), a.qp))
	e := must(b.Event(t.Context(), patience))(t)
	if e.Type != service.EventLost || e.Failure.Class != service.ClassLost || e.Failure.Terminate != nil {
		t.Errorf("event %+v, failure %+v", e, e.Failure)
	}
	if s := must(a.State(t.Context(), a.qp))(t); s.State != service.StateError || s.Failure.Class != service.ClassAborted || s.Failure.Terminate != nil {
		t.Errorf("state %+v, failure %+v", s, s.Failure)
	}
	_, err := a.Post(t.Context(), a.qp, service.Post{Op: service.OpWrite})
	refused(t, err, service.CodeState)
}

func TestOverflowNamesTheQueue(t *testing.T) {
	a, b := pair(t, service.ListenArgs{Recvs: service.Recvs(0, 0), QP: service.QPAttr{RecvEntries: 1}}, service.ConnectArgs{})
	must(a.Post(t.Context(), a.qp, service.Post{Op: service.OpSend}, service.Post{Op: service.OpSend}))(t)
	for {
		e := must(b.Event(t.Context(), patience))(t)
		if e.Type == service.EventCQOverflow {
			if e.QP != b.qp || e.Queue != service.RecvQueue {
				t.Errorf("event %+v", e)
			}
			return
		}
	}
}

func TestFirstFPDUTimeoutEndsAPeerToPeerStartup(t *testing.T) {
	b := dial(t, serving(t, Options{}))
	l := must(b.Listen(t.Context(), service.ListenArgs{FirstFPDUTimeout: 1}))(t)
	c, err := net.Dial("tcp", l.Address)
	check(t, err)
	defer c.Close()
	block, _ := mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRAll}.AppendBinary(nil)
	request, err := (&mpa.Frame{Revision: 2, CRC: true, Enhanced: true, PrivateData: block}).AppendBinary(nil)
	check(t, err)
	_, err = c.Write(request)
	check(t, err)
	acc := must(b.Accepted(t.Context(), l.Listener, patience))(t)
	end{b, acc.QP}.becomes(t, service.StateError)
}
