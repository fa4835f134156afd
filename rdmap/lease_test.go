package rdmap

import (
	"errors"
	"testing"
	"time"

	"urnic/pd"
	"urnic/stag"
)

// A batchULP submits operations, and looks at what is delivered.
type batchULP struct {
	benchULP
	queue     []*Operation
	onDeliver func(Delivery) error
	onDone    func(*Operation) error
}

func (u *batchULP) Next() *Operation {
	if len(u.queue) == 0 {
		return nil
	}
	o := u.queue[0]
	u.queue = u.queue[1:]
	return o
}

func (u *batchULP) Deliver(d Delivery) error {
	u.delivered++
	if u.onDeliver != nil {
		return u.onDeliver(d)
	}
	return nil
}

func (u *batchULP) Completed(o *Operation) error {
	u.completed++
	if u.onDone != nil {
		return u.onDone(o)
	}
	return nil
}

// A batch is two streams over a wire: what a has posted, b receives with one call.
type batch struct {
	*testing.T
	a, b     *Stream
	from, to batchULP
	table    *stag.Table
	domain   *pd.Domain
}

func newBatch(t *testing.T, trace func(Trace)) *batch {
	d, err := pd.NewManager(pd.Limits{}, pd.Limits{}).NewDomain()
	if err != nil {
		t.Fatal(err)
	}
	n := &batch{T: t, table: new(stag.Table), domain: d}
	wa, wb := newWires(1442)
	cfg := Config{Memory: n.table, Scope: stag.Scope{Domain: d, Stream: 1}, IRD: 8, ORD: 8}
	n.a = NewStream(wa, &n.from, cfg)
	cfg.Trace = trace
	n.b = NewStream(wb, &n.to, cfg)
	n.to.buffer.mem = make([]byte, 1000)
	return n
}

func (n *batch) region(access stag.Access) region {
	n.Helper()
	mem := make([]byte, 64)
	e, err := n.table.Register(n.domain, stag.Memory{Mem: mem, Base: base, Access: access, Stream: 1})
	if err != nil {
		n.Fatal(err)
	}
	return region{mem, e.STag(), e}
}

// post has a send operations, which b does not see yet.
func (n *batch) post(ops ...*Operation) {
	n.Helper()
	n.from.queue = append(n.from.queue, ops...)
	if _, err := n.a.Transmit(&n.from); err != nil {
		n.Fatal(err)
	}
}

// soon runs f, which must not wait for anything.
func soon(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	watch := time.NewTimer(time.Minute)
	defer watch.Stop()
	select {
	case <-done:
	case <-watch.C:
		t.Fatal("it waits for its own end")
	}
}

// receivers are the two ways to receive.
var receivers = map[string]func(s *Stream) error{
	"Receive": (*Stream).Receive,
	"TryReceive": func(s *Stream) error {
		some, err := s.TryReceive()
		if err == nil && !some {
			err = errors.New("there was nothing")
		}
		return err
	},
}

// Memory is held open from segment to segment, but not when something may wait
// for it to be closed, and not when there is nothing more at hand.
func TestMemoryIsNotHeldWhenItMayBeClosed(t *testing.T) {
	const writable = stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead | stag.RemoteInvalidate
	for name, receive := range receivers {
		t.Run(name, func(t *testing.T) {
			t.Run("at the end", func(t *testing.T) {
				n := newBatch(t, nil)
				for range 3 {
					r := n.region(writable)
					n.post(writeOf(r.tag, base, []byte("some")), writeOf(r.tag, base+4, []byte("more")))
					if err := receive(n.b); err != nil || string(r.mem[:8]) != "somemore" || !n.b.Lease().Idle() {
						t.Fatalf("%v; %q", err, r.mem[:8])
					}
					soon(t, func() {
						if err := r.entry.Deregister(); err != nil {
							t.Error(err)
						}
					})
				}
			})
			t.Run("at the end with an error", func(t *testing.T) {
				n := newBatch(t, nil)
				r := n.region(writable)
				n.post(writeOf(r.tag, base, []byte("some")), writeOf(r.tag, base+64, []byte("x")))
				if err := receive(n.b); err == nil || !n.b.Lease().Idle() {
					t.Errorf("%v; want an error", err)
				}
				soon(t, func() {
					if err := r.entry.Deregister(); err != nil {
						t.Error(err)
					}
				})
			})
			t.Run("before a remote invalidation", func(t *testing.T) {
				n := newBatch(t, nil)
				r := n.region(writable)
				n.post(writeOf(r.tag, base, []byte("some")), invalidateOf(OpSendInvalidate, []byte("x"), r.tag))
				soon(t, func() {
					if err := receive(n.b); err != nil {
						t.Error(err)
					}
				})
				if n.to.delivered != 1 || r.entry.Valid() {
					t.Errorf("%d delivered; valid: %v", n.to.delivered, r.entry.Valid())
				}
			})
			t.Run("before an invalidation, and what follows it", func(t *testing.T) {
				n := newBatch(t, nil)
				r := n.region(writable)
				n.post(writeOf(r.tag, base, []byte("some")), invalidateOf(OpSendInvalidate, []byte("x"), r.tag), writeOf(r.tag, base, []byte("late")))
				soon(t, func() {
					if err := receive(n.b); err == nil {
						t.Error("an invalidated STag was written to")
					}
				})
				if string(r.mem[:4]) != "some" {
					t.Errorf("the memory holds %q", r.mem[:4])
				}
			})
			t.Run("while the ULP completes a Read", func(t *testing.T) {
				n := newBatch(t, nil)
				source, sink, other := n.region(writable), n.region(writable), n.region(writable)
				// b reads, and a writes and answers in one go.
				n.post(writeOf(other.tag, base, []byte("other")))
				n.to.queue = []*Operation{readOf(source.tag, base, sink.tag, base, 8)}
				if _, err := n.b.Transmit(&n.to); err != nil {
					t.Fatal(err)
				}
				if err := n.a.Receive(); err != nil {
					t.Fatal(err)
				}
				n.to.onDone = func(*Operation) error {
					if s := sink.entry.Stats(); s != (stag.Stats{Accesses: 1, OctetsIn: 8}) {
						t.Errorf("the sink counts %+v when the Read completes", s)
					}
					if c := n.b.Stats().Received[OpReadResponse]; c != (Count{1, 8}) {
						t.Errorf("the stream counts %+v when the Read completes", c)
					}
					if err := other.entry.Deregister(); err != nil {
						return err
					}
					return sink.entry.Deregister()
				}
				n.post(writeOf(source.tag, base, []byte("after")))
				soon(t, func() {
					if err := receive(n.b); err != nil {
						t.Error(err)
					}
				})
				if n.to.completed != 1 || sink.entry.Valid() || other.entry.Valid() {
					t.Errorf("%d completed", n.to.completed)
				}
			})
			t.Run("while the trace hook runs", func(t *testing.T) {
				var r region
				seen := 0
				n := newBatch(t, func(m Trace) {
					if m.Sent {
						return
					}
					seen++
					soon(t, func() {
						if err := r.entry.Deregister(); err != nil {
							t.Error(err)
						}
					})
				})
				for _, o := range []*Operation{
					nil, sendOf(OpSend, []byte("x")), immediateOf(OpImmediate, Immediate{}), readOf(1, 0, 2, 0, 0), writeOf(7, base, nil), writeOf(0, 1, []byte("refused")),
				} {
					r = n.region(writable)
					before := seen
					ops := []*Operation{writeOf(r.tag, base, []byte("some"))}
					if o != nil {
						// Its first half opens the memory, without a message that is over.
						ops = []*Operation{o}
						if _, err := n.b.Lease().Open(n.table, r.tag, stag.Scope{Domain: n.domain, Stream: 1}, stag.RemoteWrite, base, 1); err != nil {
							t.Fatal(err)
						}
					}
					n.post(ops...)
					err := receive(n.b)
					if want := o != nil && o.Op == OpWrite && o.Length > 0; (err != nil) != want {
						t.Errorf("%v", err)
					}
					if seen != before+1 {
						t.Errorf("the hook has seen %d messages", seen-before)
					}
				}
			})
		})
	}
}

// When a message is delivered, it and all before it are counted.
func TestCountersAreExactWhenAMessageIsDelivered(t *testing.T) {
	for name, receive := range receivers {
		t.Run(name, func(t *testing.T) {
			n := newBatch(t, nil)
			r := n.region(stag.LocalWrite | stag.RemoteWrite)
			var ops []*Operation
			var writes, octets, sends, sent uint64
			type counts struct {
				entry        stag.Stats
				write, sends Count
			}
			var want []counts
			for i := range uint64(12) {
				if i%3 == 2 {
					ops = append(ops, sendOf(OpSend, make([]byte, i)))
					sends++
					sent += i
					want = append(want, counts{stag.Stats{Accesses: writes, OctetsIn: octets}, Count{writes, octets}, Count{sends, sent}})
					continue
				}
				ops = append(ops, writeOf(r.tag, base, make([]byte, i+1)))
				writes++
				octets += i + 1
			}
			i := 0
			n.to.onDeliver = func(Delivery) error {
				s := n.b.Stats().Received
				if got := (counts{r.entry.Stats(), s[OpWrite], s[OpSend]}); got != want[i] {
					t.Errorf("message %d: counted %+v; want %+v", i, got, want[i])
				}
				i++
				return nil
			}
			n.post(ops...)
			if err := receive(n.b); err != nil || i != 4 {
				t.Errorf("%d delivered, %v", i, err)
			}
			if s := n.a.Stats().Sent; s[OpWrite] != (Count{writes, octets}) || s[OpSend] != (Count{sends, sent}) {
				t.Errorf("counted as sent: %+v, %+v", s[OpWrite], s[OpSend])
			}
			if n.a.Stats().Sent != n.b.Stats().Received {
				t.Error("what is sent is not what is received")
			}
		})
	}
}

// Slots keep what is placed when they become more, wherever the first one lies.
func TestSlotsKeepTheirContentWhenTheyGrow(t *testing.T) {
	for first := range 6 {
		for have := range 6 {
			s := slots{size: 8}
			mark := byte(0)
			marks := []byte{}
			put := func(ahead int) {
				mark++
				b := s.at(uint32(ahead))
				if b.Len() != 8 {
					t.Fatalf("a slot of %d octets", b.Len())
				}
				if err := b.Place(0, []byte{mark}); err != nil {
					t.Fatal(err)
				}
				marks = append(marks, mark)
			}
			take := func() {
				if got := s.take(1)[0]; got != marks[0] {
					t.Fatalf("first %d, %d under way: the slot holds %d; want %d", first, have, got, marks[0])
				}
				marks = marks[1:]
			}
			for range 4 { // so that there are some
				put(len(marks))
			}
			for range 4 {
				take()
			}
			for range first { // and the first one lies anywhere
				put(0)
				take()
			}
			for range have {
				put(len(marks))
			}
			for range 9 {
				put(len(marks)) // grows
				if len(marks) > 4 {
					take()
				}
			}
			for len(marks) > 0 {
				take()
			}
		}
	}
}
