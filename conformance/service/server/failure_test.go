package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"

	"urnic/conformance/service"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
)

func TestErrorsHaveTheirCodes(t *testing.T) {
	op := func(err error) error { return &rnic.OpError{Op: "do", Object: "it", Err: err} }
	for _, c := range []struct {
		err  error
		code service.Code
	}{
		{op(errors.New("a rule")), service.CodeRefused},
		{op(&pd.LimitError{}), service.CodeLimit},
		{op(rnic.ErrBusy), service.CodeState},
		{op(&rnic.StateError{State: rnic.Error, Err: &rdmap.PeerError{}}), service.CodeState},
		{op(&mpa.RejectedError{}), service.CodeRejected},
		{op(&mpa.Error{Code: mpa.CodeStartup}), service.CodeStream},
		{op(&rdmap.Error{}), service.CodeStream},
		{op(&rdmap.PeerError{}), service.CodeStream},
		{op(&net.OpError{Err: errors.New("refused")}), service.CodeNetwork},
		{fmt.Errorf("late: %w", errTimeout), service.CodeTimeout},
		{errors.New("who knows"), service.CodeInternal},
	} {
		if e := errorOf(c.err); e.Code != c.code {
			t.Errorf("%v has code %q; want %q", c.err, e.Code, c.code)
		}
	}
	if e := startupErrorOf(op(&mpa.Error{Code: mpa.CodeConnectionLost})); e.Code != service.CodeStartup {
		t.Errorf("a connection lost in start-up has code %q", e.Code)
	}
}

func TestNoTerminateIsSaidToBeSentOnALostConnection(t *testing.T) {
	lost := &mpa.Error{Code: mpa.CodeConnectionLost}
	f := failureOf(&rdmap.Error{Code: rdmap.TermCode(lost.TermWord()), Err: lost})
	if f.Class != service.ClassLost || f.Terminate != nil {
		t.Errorf("failure %+v", f)
	}
	crc := &mpa.Error{Code: mpa.CodeCRC, Clause: "RFC 5044 §8"}
	f = failureOf(&rdmap.Error{Code: rdmap.TermCode(crc.TermWord()), Err: crc})
	if f.Class != service.ClassMPA || f.MPACode != 2 || f.Clause != crc.Clause || f.Terminate.Word() != 0x2002 {
		t.Errorf("failure %+v, Terminate %+v", f, f.Terminate)
	}
}

func TestAFailedStartupIsToldOnce(t *testing.T) {
	peer := netip.MustParseAddrPort("127.0.0.1:7")
	c := &session{starting: make(map[netip.AddrPort]*listener)}
	l := &listener{session: c, results: make(chan outcome, 2)}
	c.starting[peer] = l
	c.startupFailed(peer, nil, errors.New("the first to know"))
	l.tell(peer, outcome{err: errTimeout})
	c.startupFailed(peer, nil, errors.New("the last"))
	if o := <-l.results; o.err.Message != "the first to know" || o.err.Code != service.CodeStartup || len(l.results) != 0 {
		t.Errorf("told: %v, and %d more", o.err, len(l.results))
	}
}

// A request that is one too many to be held leaves nothing behind.
func TestARequestThatIsNotHeldIsForgotten(t *testing.T) {
	dev, err := rnic.Open(rnic.Config{})
	check(t, err)
	defer dev.Close()
	domain, err := dev.AllocPD()
	check(t, err)
	from, err := dev.Listen(t.Context(), "127.0.0.1:0")
	check(t, err)
	cq, err := dev.CreateCQ(rnic.CQAttr{Entries: 4})
	check(t, err)
	qp, err := domain.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var connecting sync.WaitGroup
	connecting.Go(func() { _ = qp.Connect(ctx, from.Addr().String(), rnic.ConnParam{}) }) // nobody answers
	r, err := from.Accept(t.Context())
	check(t, err)
	c := &session{starting: make(map[netip.AddrPort]*listener), held: make(map[int]*heldRequest)}
	for n := range maxAccepted {
		c.held[n+1] = nil
	}
	l := &listener{session: c, results: make(chan outcome, 1), args: service.ListenArgs{Answer: service.AnswerHold}}
	c.starting[addrPort(r.RemoteAddr())] = l
	l.dealWith(t.Context(), r)
	cancel()
	connecting.Wait()
	if len(c.starting) != 0 || len(c.held) != maxAccepted || len(l.results) != 0 {
		t.Errorf("%d start-ups, %d held, %d results", len(c.starting), len(c.held), len(l.results))
	}
}
