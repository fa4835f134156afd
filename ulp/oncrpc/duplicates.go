package oncrpc

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"net"
	"net/netip"
	"sync"

	"urnic/ulp/oncrpc/xdr"
)

// duplicates are the replies to calls that should not be carried out again, which a
// client sends once more if it has lost its connection: with the same XID, from the same
// host, but perhaps another port.
type duplicates struct {
	seed         maphash.Seed
	most, octets int

	mu             sync.Mutex
	known          map[duplicateKey]*answer
	oldest, newest *answer // of those that have ended
	held           int     // bytes of them
}

// A duplicateKey is what a call is known by. A host that was started again may well use an
// XID again: for another call, as the sum of its beginning shows.
type duplicateKey struct {
	xid, program, version, procedure uint32

	peer    netip.Addr
	other   string // the address of a peer without an IP address
	account string // of the connection: users of one host are not told each other's replies
	sum     uint64
	length  int
}

// An answer is what is known of a call.
type answer struct {
	key     duplicateKey
	waiting chan struct{} // closed once the call has ended; nil if nobody waits

	// Of a call that has ended:
	ended  bool
	stream []byte // the reply; nil if there was none
	bulks  []span // where bulks lie in it
	newer  *answer
}

type span struct{ at, n int }

func newDuplicates(most, octets int) *duplicates {
	return &duplicates{seed: maphash.MakeSeed(), most: most, octets: octets, known: make(map[duplicateKey]*answer)}
}

// key returns what a call is known by.
func (t *duplicates) key(in *incoming) duplicateKey {
	h := &in.Header
	k := duplicateKey{xid: h.XID, program: h.Program, version: h.Version, procedure: h.Procedure}
	k.peer, k.other = host(in.Exchange.Remote)
	k.account = in.Exchange.Account
	var sum maphash.Hash
	sum.SetSeed(t.seed)
	k.length = write(&sum, in.Exchange.Call)
	k.sum = sum.Sum64()
	return k
}

// host returns the address of a peer without its port.
func host(a net.Addr) (netip.Addr, string) {
	switch a := a.(type) {
	case nil:
		return netip.Addr{}, ""
	case *net.TCPAddr:
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			return ip.Unmap().WithZone(a.Zone), ""
		}
	}
	if ap, err := netip.ParseAddrPort(a.String()); err == nil {
		return ap.Addr().Unmap(), ""
	}
	return netip.Addr{}, a.String()
}

var zeros [3]byte

// summed is how many bytes of a call it is known by, beside its length: the header, with
// the longest credential, two names and what else tells calls apart, but not all that is
// written, because a sum of that costs more than to write it to memory.
const summed = 2048

// write adds the beginning of a message to a sum, as it is if nothing of it is moved, and
// returns how long it is: a client need not move the same when it sends the call again.
func write(sum *maphash.Hash, m *Message) int {
	rest, at := m.Stream, 0
	add := func(p []byte) {
		if at < summed {
			_, _ = sum.Write(p[:min(len(p), summed-at)]) // never fails
		}
		at += len(p)
	}
	for _, moved := range m.Moved {
		n := len(moved.Data)
		if before := moved.Position - at; before >= 4 && before <= len(rest) {
			add(rest[:before])
			rest = rest[before:]
			if length := binary.BigEndian.Uint32(m.Stream[len(m.Stream)-len(rest)-4:]); uint64(length) < uint64(n) {
				n = int(length)
			}
		}
		add(moved.Data[:n])
		add(zeros[:-n&3])
	}
	add(rest)
	return at
}

// begin returns what is known of a call, and whether that is only that it has begun now:
// then the caller must say when it has ended.
func (t *duplicates) begin(in *incoming) (a *answer, first bool) {
	k := t.key(in)
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.known[k]; a != nil {
		return a, false
	}
	a = &answer{key: k}
	t.known[k] = a
	return a, true
}

// end keeps the reply to a call that has been carried out.
func (t *duplicates) end(a *answer, reply *xdr.Encoder) {
	stream := reply.AppendTo(make([]byte, 0, reply.Len()))
	var bulks []span
	for _, b := range reply.Bulks() {
		bulks = append(bulks, span{b.Position, b.Len})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a.stream, a.bulks = stream, bulks
	a.finish()
	if len(stream) > t.octets {
		delete(t.known, a.key)
		return
	}
	if t.newest == nil {
		t.oldest = a
	} else {
		t.newest.newer = a
	}
	t.newest = a
	t.held += len(stream)
	for t.held > t.octets || len(t.known) > t.most && t.oldest != nil {
		t.dropOldest()
	}
}

func (t *duplicates) dropOldest() {
	a := t.oldest
	delete(t.known, a.key)
	t.held -= len(a.stream)
	if t.oldest = a.newer; t.oldest == nil {
		t.newest = nil
	}
}

// finish tells those that wait for a call that it has ended; under mu.
func (a *answer) finish() {
	a.ended = true
	if a.waiting != nil {
		close(a.waiting)
	}
}

// forget says that a call has ended, if it has not, and was not replied to.
func (t *duplicates) forget(a *answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.ended {
		a.finish()
		delete(t.known, a.key)
	}
}

// again writes the reply to a call that is known. If the call is still being carried out
// it waits: over a connection that loses nothing no client asks a third time, so that one
// which was not answered would wait forever. It returns ErrNoReply if there is none.
func (t *duplicates) again(ctx context.Context, a *answer, reply *xdr.Encoder) error {
	t.mu.Lock()
	ended := a.ended
	if !ended && a.waiting == nil {
		a.waiting = make(chan struct{})
	}
	waiting := a.waiting
	t.mu.Unlock()
	if !ended {
		select {
		case <-waiting:
		case <-ctx.Done():
			return ErrNoReply
		}
	}
	if a.stream == nil {
		return ErrNoReply
	}
	from := 0
	for _, b := range a.bulks {
		reply.Fixed(a.stream[from : b.at-4])
		reply.Bulk(a.stream[b.at : b.at+b.n])
		from = b.at + b.n + -b.n&3
	}
	reply.Fixed(a.stream[from:])
	return nil
}
