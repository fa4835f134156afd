package rendezvous

import (
	"net/netip"
	"slices"

	"urnic/internal/door"
	"urnic/rnic"
)

// A request is one of a peer that waits for its queue pair.
type request struct {
	*rnic.ConnRequest
	Message
	source
	wrong bool // it has been counted as one with a wrong PSN; under the matchmaker's mu
}

// A source is where a request comes from, as far as that is known for certain.
type source struct {
	from  netip.Addr // with the zone of a link-local one; not valid if local
	local bool       // this host
	mine  bool       // this host, and a process of the same user
}

// isAgain reports whether a request is an older one, asked again.
func (r *request) isAgain(older *request) bool {
	return r.To == older.To && r.From == older.From && r.source == older.source && r.HasPSN == older.HasPSN && r.PSN == older.PSN
}

// A backlog holds the requests that wait for their queue pairs, in the order in which
// they came. Most of them may be strangers': so no source can keep others out, however
// many requests it makes.
type backlog struct{ all []*request }

// of returns the requests for a queue pair.
func (b *backlog) of(qpn uint32) (found []*request) {
	for _, r := range b.all {
		if r.To == qpn {
			found = append(found, r)
		}
	}
	return found
}

// remove takes out the requests that f wants, and returns them.
func (b *backlog) remove(f func(*request) bool) (removed []*request) {
	b.all = slices.DeleteFunc(b.all, func(r *request) bool {
		if f(r) {
			removed = append(removed, r)
			return true
		}
		return false
	})
	return removed
}

// add takes a request in, if there is room or can be made. It returns those that had
// to go. wanted reports whether a request is one that its queue pair is about to take:
// it goes before others.
func (b *backlog) add(r *request, wanted func(*request) bool) (added bool, dropped []*request) {
	dropped = b.remove(func(old *request) bool { return r.isAgain(old) || old.To == r.To && !door.Waiting(old.ConnRequest) })
	if len(b.of(r.To)) >= heldByEach {
		out := b.leastWanted(wanted, func(old *request) bool { return old.To == r.To })
		if wanted(out) && !wanted(r) {
			return false, dropped
		}
		dropped = append(dropped, b.remove(func(old *request) bool { return old == out })...)
	}
	if len(b.all) >= heldByAll {
		dropped = append(dropped, b.remove(func(old *request) bool { return !door.Waiting(old.ConnRequest) })...)
	}
	if len(b.all) >= heldByAll {
		out := b.leastWanted(wanted, func(*request) bool { return true })
		if !wanted(r) && (wanted(out) || b.count(r.source) >= b.count(out.source)) {
			return false, dropped // its source has its share
		}
		dropped = append(dropped, b.remove(func(old *request) bool { return old == out })...)
	}
	b.all = append(b.all, r)
	return true, dropped
}

// leastWanted returns which of the requests that f wants has to go first: the oldest of
// the source that has most there. Requests that are wanted go last.
func (b *backlog) leastWanted(wanted, f func(*request) bool) (out *request) {
	type class struct {
		wanted bool
		source
	}
	counts := map[class]int{}
	classes := make([]class, len(b.all))
	for i, r := range b.all {
		if f(r) {
			classes[i] = class{wanted(r), r.source}
			counts[classes[i]]++
		}
	}
	var at class
	for i, r := range b.all {
		c := classes[i]
		if f(r) && (out == nil || at.wanted && !c.wanted || at.wanted == c.wanted && counts[c] > counts[at]) {
			out, at = r, c
		}
	}
	return out
}

// count returns how many requests a source has.
func (b *backlog) count(s source) (n int) {
	for _, r := range b.all {
		if r.source == s {
			n++
		}
	}
	return n
}
