package rds

import (
	"errors"
	"fmt"

	"urnic/rnic"
)

// errRefused says that the peer has ended the connection because of an operation.
var errRefused = errors.New("rds: the peer has refused the RDMA operation")

// refusal returns why an operation has failed that the peer has refused.
func refusal(r rnic.Refusal, cause error) error {
	if r.Unsupported {
		return fmt.Errorf("%w: %w: %w", errRefused, ErrNotSupported, cause)
	}
	return fmt.Errorf("%w: %w", errRefused, cause)
}

// blameOperation finds the operation because of which the peer has ended the link, if the RNIC has not. It
// blames a Read, which is outstanding until it is answered. A Write may have left long ago; and siw does
// not name the atomic that it refuses. One operation at most is blamed, as the machine repeats the others
// if it can. The node is locked.
func (l *iwarpLink) blameOperation() {
	r, ok := l.qp.Refusal()
	if !ok || l.blamed {
		return
	}
	for _, suspect := range suspicions(&r) {
		for _, p := range l.unsettled {
			if !p.o.settled && suspect(p.o) {
				l.path.Done(l.n.now(), l.id, p.m, refusal(r, l.qp.Err()))
				return
			}
		}
	}
}

// A suspicion says whether an operation may be the one that was refused.
type suspicion func(*Operation) bool

// suspicions returns what to look for, the most certain first. The oldest operation is to blame of
// those that match: what was before it has been carried out.
func suspicions(r *rnic.Refusal) []suspicion {
	write := func(o *Operation) bool { return r.Write && o.op == rnic.OpWrite }
	answered := func(o *Operation) bool { return r.Read && o.op != rnic.OpWrite }
	if r.Remote == (rnic.Remote{}) {
		return []suspicion{write, answered}
	}
	named := func(o *Operation) bool { return write(o) && o.remote.STag == r.Remote.STag }
	within := func(o *Operation) bool { return named(o) && r.Remote.TO-o.remote.TO < o.bytes() }
	exact := func(o *Operation) bool {
		end := r.Remote.TO - o.remote.TO + r.Length
		return within(o) && (end == o.bytes() || end < o.bytes() && !r.Last)
	}
	return []suspicion{exact, within, named}
}

// bytes returns how many bytes the operation moves.
func (o *Operation) bytes() uint64 {
	n := uint64(0)
	for _, b := range o.local {
		n += uint64(len(b))
	}
	return n
}
