package service

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
)

func TestErrorsHaveTheirCodes(t *testing.T) {
	op := func(err error) error { return &rnic.OpError{Op: "do", Object: "it", Err: err} }
	for _, c := range []struct {
		err  error
		code Code
	}{
		{op(errors.New("a rule")), CodeRefused},
		{op(&pd.LimitError{}), CodeLimit},
		{op(rnic.ErrBusy), CodeState},
		{op(&rnic.StateError{State: rnic.Error, Err: &rdmap.PeerError{}}), CodeState},
		{op(&mpa.RejectedError{}), CodeRejected},
		{op(&mpa.Error{Code: mpa.CodeStartup}), CodeStream},
		{op(&rdmap.Error{}), CodeStream},
		{op(&rdmap.PeerError{}), CodeStream},
		{op(&net.OpError{Err: errors.New("refused")}), CodeNetwork},
		{fmt.Errorf("late: %w", errTimeout), CodeTimeout},
		{errors.New("who knows"), CodeInternal},
	} {
		if e := errorOf(c.err); e.Code != c.code {
			t.Errorf("%v has code %q; want %q", c.err, e.Code, c.code)
		}
	}
	if e := startupErrorOf(op(&mpa.Error{Code: mpa.CodeConnectionLost})); e.Code != CodeStartup {
		t.Errorf("a connection lost in start-up has code %q", e.Code)
	}
}

func TestNoTerminateIsSaidToBeSentOnALostConnection(t *testing.T) {
	lost := &mpa.Error{Code: mpa.CodeConnectionLost}
	f := failureOf(&rdmap.Error{Code: rdmap.TermCode(lost.TermWord()), Err: lost})
	if f.Class != ClassLost || f.Terminate != nil {
		t.Errorf("failure %+v", f)
	}
	crc := &mpa.Error{Code: mpa.CodeCRC, Clause: "RFC 5044 §8"}
	f = failureOf(&rdmap.Error{Code: rdmap.TermCode(crc.TermWord()), Err: crc})
	if f.Class != ClassMPA || f.MPACode != 2 || f.Clause != crc.Clause || f.Terminate.Word() != 0x2002 {
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
	if o := <-l.results; o.err.Message != "the first to know" || o.err.Code != CodeStartup || len(l.results) != 0 {
		t.Errorf("told: %v, and %d more", o.err, len(l.results))
	}
}
