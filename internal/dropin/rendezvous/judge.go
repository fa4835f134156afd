package rendezvous

import (
	"fmt"
	"net"
	"os"

	"urnic/internal/host/peeruid"
)

// A verdict is what a queue pair makes of a request.
type verdict int

const (
	// A stranger has not shown that it is the peer. Its request waits: the
	// program may name it yet, with another RTR.
	stranger verdict = iota
	// An unproven one may be the peer, but has not given a PSN that shows it.
	// It is refused; this side calls the peer instead.
	unproven
	// The peer is the one that the program has named.
	thePeer
)

// maxGuesses is how many requests with a wrong PSN a queue pair puts up with: then no
// PSN proves anything, as somebody tries them all.
const maxGuesses = 1000

// judge says whether a request is the peer's. A PSN that the program expects, other than
// 0, must be given. Besides, the request comes from the address that the program has
// named; or, if that is this host, from a process of the same user, or it gives a PSN
// other than 0. The caller holds the matchmaker's mu.
func (a *attempt) judge(r *request) verdict {
	p := &a.peer
	if r.From != p.QPN || r.local != a.local || !r.local && r.from != p.Addr {
		a.report(r, r.From == p.QPN, "its address is not that of the GID")
		return stranger
	}
	switch {
	case p.PSN == 0:
		if !r.local || r.mine {
			return thePeer
		}
		a.report(r, true, "another user of this host, and the program expects PSN 0, which proves nothing")
		return stranger
	case !r.HasPSN:
		return unproven
	case r.PSN == p.PSN && r.mine:
		return thePeer
	case a.guesses >= maxGuesses && SlotOf(p.QPN) != 0:
		return unproven
	case r.PSN == p.PSN:
		return thePeer
	}
	if !r.wrong {
		r.wrong = true
		a.guesses++
	}
	a.report(r, true, "another PSN than the program expects")
	return stranger
}

// report tells the log once about a request that is refused though it names the right
// queue pairs.
func (a *attempt) report(r *request, near bool, why string) {
	if !near || a.told {
		return
	}
	a.told = true
	a.e.m.log.Warn("rendezvous: a request for the right queue pair is not the peer's", "why", why,
		"qp", a.e.num, "peer", a.peer.QPN, "address", r.RemoteAddr().String(), "gid", a.peer.Addr.String())
}

// verify makes sure that it is the peer who has answered a call, before anything else is
// said to it: nobody else than the process that the queue pair number names should have
// its port, but that process may have ended.
func (a *attempt) verify(c net.Conn, data []byte) error {
	msg, err := Parse(data)
	if err != nil {
		return err
	}
	p := &a.peer
	switch {
	case msg.Kind != Agree || msg.From != p.QPN || msg.To != a.e.num:
		return &MessageError{fmt.Sprintf("the answer is of kind %d, of queue pair 0x%x to 0x%x", msg.Kind, msg.From, msg.To)}
	case p.PSN != 0 && msg.HasPSN:
		if msg.PSN == p.PSN {
			a.hear(&msg)
			return nil
		}
		return &StrangerError{c.RemoteAddr(), "gives another PSN than the program expects"}
	case a.e.m.sourceOf(c.LocalAddr(), c.RemoteAddr()).isSomebodyElse():
		return &StrangerError{c.RemoteAddr(), "is another user's, and gives no PSN that the program expects"}
	}
	a.hear(&msg)
	return nil
}

// isSomebodyElse reports whether a source is a process of this host and of another user.
func (s source) isSomebodyElse() bool { return s.local && !s.mine }

// A StrangerError says that somebody else than the peer has answered a call.
type StrangerError struct {
	Addr net.Addr
	What string // it does
}

// Error says who has answered.
func (e *StrangerError) Error() string {
	return fmt.Sprintf("rendezvous: the program that answers at %v %s: it is not the peer", e.Addr, e.What)
}

// sourceOf says where a connection comes from.
func (m *Matchmaker) sourceOf(local, remote net.Addr) source {
	from := addrOf(remote)
	if !m.cfg.Local(from.WithZone("")) {
		return source{from: from}
	}
	return source{local: true, mine: m.cfg.SameUser(local, remote)}
}

// sameUser asks the operating system whether the other end of a connection within this
// host belongs to the user of this process.
func sameUser(local, remote net.Addr) bool {
	uid, err := peeruid.Within(local, remote)
	return err == nil && int(uid) == os.Geteuid()
}
