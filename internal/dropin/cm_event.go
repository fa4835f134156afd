//go:build linux

package dropin

import "syscall"

// enum rdma_cm_event_type (rdma/rdma_cma.h).
const (
	cmAddrResolved uint32 = iota
	cmAddrError
	cmRouteResolved
	cmRouteError
	cmConnectRequest
	cmConnectResponse
	cmConnectError
	cmUnreachable
	cmRejected
	cmEstablished
	cmDisconnected
	_ // of a device that is removed
	cmMulticastJoin
)

// A CMEvent is struct urnic_cm_event.
type CMEvent struct {
	Cookie uint64
	Group  uint64 // the cookie of the group, of cmMulticastJoin
	Type   uint32
	Status int32
	NewID  Handle
	// As the consumer of the event would give them to connect or accept.
	ResponderResources, InitiatorDepth uint32
	QPN, QKey                          uint32
	PrivateDataLen                     uint32
	PrivateData                        [512]byte
}

// A cmEvent is an event that nobody has fetched. Its cookie is filled in then.
type cmEvent struct {
	id    *cmID // whose it is
	child *cmID // of a request: its id
	CMEvent
}

// An eventChannel is where ids tell their events.
type eventChannel struct {
	queue *eventQueue[*cmEvent] // nil: nobody hears them
}

// nowhere is the channel of ids whose own one is gone.
var nowhere = new(eventChannel)

// take removes events that nobody has fetched.
func (ch *eventChannel) take(match func(*cmEvent) bool) []*cmEvent {
	if ch.queue == nil {
		return nil
	}
	return ch.queue.take(match)
}

// EvchCreate makes an event channel, and returns a descriptor that is readable while
// EvchNext has something.
func (e *Engine) EvchCreate() (h Handle, fd int, _ Errno) {
	q, err := newEventQueue[*cmEvent]()
	if err != nil {
		return 0, -1, e.fail(err)
	}
	if h = e.evchs.add(&eventChannel{queue: q}); h == 0 {
		_ = q.close() // nobody has seen it
		return 0, -1, e.refuse(syscall.ENOMEM, "create event channel: there are too many")
	}
	return h, q.num, ok
}

// EvchNext tells the oldest event that nobody has fetched.
func (e *Engine) EvchNext(evch Handle, out *CMEvent) Errno {
	ch := e.evchs.get(evch)
	if ch == nil || out == nil {
		return syscall.EINVAL
	}
	for {
		ev, some := ch.queue.next()
		if !some {
			return syscall.EAGAIN
		}
		if ev.id.fetched(ev) {
			*out = ev.CMEvent
			return ok
		}
	}
}

// EvchDestroy gives an event channel up, with the events in it. What its ids would
// tell from now on is lost, unless they are migrated, and requests are rejected.
func (e *Engine) EvchDestroy(evch Handle) Errno {
	ch := e.evchs.remove(evch)
	if ch == nil {
		return syscall.EINVAL
	}
	e.ids.each(func(_ Handle, id *cmID) {
		id.mu.Lock()
		defer id.mu.Unlock()
		if id.channel == ch {
			id.channel = nowhere
		}
	})
	for _, ev := range ch.take(func(ev *cmEvent) bool { return ev.child != nil }) {
		ev.child.destroy() // nobody will ever see it
	}
	return e.fail(ch.queue.close())
}

// fetched fills in what an event says of its id at the time when it is fetched. It
// reports whether the id is still there.
func (id *cmID) fetched(ev *cmEvent) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	if ev.child != nil {
		id.pending--
		ev.NewID = ev.child.handle
	}
	ev.Cookie = id.cookie
	return !id.gone
}

// tell queues an event, unless the id is gone. The caller holds mu.
func (id *cmID) tell(ev CMEvent) { id.tellOf(ev, nil) }

func (id *cmID) tellOf(ev CMEvent, child *cmID) {
	if !id.gone && id.channel.queue != nil {
		id.engine.log.printf(logDebug, "id %d: event %d, status %d", id.handle, ev.Type, ev.Status)
		id.channel.queue.push(&cmEvent{id: id, child: child, CMEvent: ev})
	}
}
