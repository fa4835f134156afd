package dissect

import (
	"container/list"
	"fmt"

	"urnic/rdmap"
	"urnic/stag"
)

// A pending is a Read or an Atomic that waits for its response.
type pending struct {
	atomic bool
	read   rdmap.ReadRequest
	id     uint32 // of an Atomic

	source any // the ULP's of the Read
	use    string

	number uint64          // in the order of asking
	places [numLists]place // where it is listed
}

func (p *pending) String() string {
	if p.atomic {
		return fmt.Sprintf("Atomic %d", p.id)
	}
	return fmt.Sprintf("the Read to STag %v TO 0x%x", p.read.SinkSTag, p.read.SinkTO)
}

// The lists that a pending is in.
const (
	inOrder  = iota
	byKey    // with those that the same response would answer
	byNobody // with those that an empty response answers, wherever it goes
	numLists
)

// A place is one in a list.
type place struct {
	list *list.List
	at   *list.Element
}

// An askKey is what a response reports about its request.
type askKey struct {
	atomic bool
	stag   stag.STag
	to     uint64 // or the identifier of an Atomic
}

func (p *pending) key() askKey {
	if p.atomic {
		return askKey{atomic: true, to: uint64(p.id)}
	}
	return askKey{stag: p.read.SinkSTag, to: p.read.SinkTO}
}

// An asked holds the Reads and Atomics of one side that wait for their
// responses. Whatever a capture makes of their order, no operation looks at all
// of them.
type asked struct {
	order, empty list.List
	keys         map[askKey]*list.List
	numbers      uint64
}

func (a *asked) len() int { return a.order.Len() }

// first returns the oldest one, or nil.
func (a *asked) first() *pending { return front(&a.order) }

func front(l *list.List) *pending {
	if l == nil || l.Len() == 0 {
		return nil
	}
	return l.Front().Value.(*pending)
}

func (a *asked) add(p *pending) {
	a.numbers++
	p.number = a.numbers
	put := func(which int, l *list.List) { p.places[which] = place{l, l.PushBack(p)} }
	put(inOrder, &a.order)
	if a.keys == nil {
		a.keys = make(map[askKey]*list.List)
	}
	same := a.keys[p.key()]
	if same == nil {
		same = list.New()
		a.keys[p.key()] = same
	}
	put(byKey, same)
	if !p.atomic && p.read.Size == 0 {
		put(byNobody, &a.empty)
	}
}

// remove removes one that is there, and reports whether it was.
func (a *asked) remove(p *pending) bool {
	if p.places[inOrder].list == nil {
		return false
	}
	for i, at := range p.places {
		if at.list != nil {
			at.list.Remove(at.at)
			p.places[i] = place{}
		}
	}
	if a.keys[p.key()].Len() == 0 {
		delete(a.keys, p.key())
	}
	return true
}

// find returns the oldest one with a key, or nil.
func (a *asked) find(k askKey) *pending { return front(a.keys[k]) }

// findRead returns the oldest Read that a response to a place answers. One that
// is empty answers an empty Read wherever it goes.
func (a *asked) findRead(tag stag.STag, to uint64, empty bool) *pending {
	p := a.find(askKey{stag: tag, to: to})
	if !empty {
		return p
	}
	if e := front(&a.empty); e != nil && (p == nil || e.number < p.number) {
		return e
	}
	return p
}

// lookAhead is how many of the oldest Reads may be the one of whose response the
// beginning was lost.
const lookAhead = 128

// findInside returns the oldest Read in whose sink a place lies, or nil.
func (a *asked) findInside(tag stag.STag, to uint64) *pending {
	e := a.order.Front()
	for range lookAhead {
		if e == nil {
			break
		}
		p := e.Value.(*pending)
		if !p.atomic && p.read.SinkSTag == tag && to-p.read.SinkTO < uint64(p.read.Size) {
			return p
		}
		e = e.Next()
	}
	return nil
}
