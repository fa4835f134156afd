package life

import "urnic/rdmap"

// A Flag says what a request wants of its queue.
type Flag uint8

// The flags of requests.
const (
	Unsignaled Flag = 1 << iota // no completion on success
	ReadFence                   // not before all Reads and atomics before it have completed (RFC 5040 §5.5 rule 12)
	LocalFence                  // not before everything before it has completed
)

// A progress says how far a request has come.
type progress uint8

const (
	queued progress = iota // not begun
	begun                  // given to the stream
	posted                 // all posted: a Send or Write is done when its mark is accepted
	done                   // to be completed in its turn
)

// A Request is a work request in the send queue, as far as its queue has to know it. It
// is part of what its owner knows of it, which the Context of its Messages leads to.
type Request struct {
	Flags Flag
	// Messages are sent in their order: two of a pair, one for each sink of a Read. A
	// request without messages is local: its owner carries it out.
	Messages []rdmap.Operation
	Owner    any

	Status Status // of the completion
	Cause  error  // why it is neither Success nor Flushed

	progress progress
	sent     int    // messages that were given to the stream
	posts    int    // messages that the stream has posted
	answers  int    // messages whose responses are in: the first ones, as responses come in order
	mark     uint64 // position in the LLP behind the last message
}

// A Status says how a request has ended.
type Status uint8

// The statuses.
const (
	Success           Status = iota
	Flushed                  // the stream had ended before
	LocalProtection          // memory of this side could not be used
	BadSTag                  // local invalidation: no such valid STag, or not ours
	InvalidateFailed         // local invalidation: it is in use
	RegisterFailed           // fast registration was refused
	BindFailed               // the window could not be bound
	NoReadResources          // a Read or atomic, but ORD is 0
	RemoteTermination        // the peer ended the stream because of this request
	LocalLength              // a receive: the message was longer
)

// Refuse notes with which status the request fails, if err is an error, and returns err.
func (r *Request) Refuse(status Status, err error) error {
	if err != nil {
		r.Status, r.Cause = status, err
	}
	return err
}

// Silent reports whether the request completes without a completion.
func (r *Request) Silent() bool { return r.Flags&Unsignaled != 0 && r.Status == Success }

func (r *Request) isLocal() bool { return len(r.Messages) == 0 }

// isRead reports whether the request waits for responses of the peer.
func (r *Request) isRead() bool {
	if r.isLocal() {
		return false
	}
	op := r.Messages[0].Op
	return op == rdmap.OpReadRequest || op == rdmap.OpAtomicRequest
}

// sendsData reports whether memory of the request's is sent.
func (r *Request) sendsData() bool {
	for i := range r.Messages {
		if r.Messages[i].Payload != nil && !r.isRead() {
			return true
		}
	}
	return false
}

// plain reports whether the request may be begun as soon as those before it are.
func (r *Request) plain() bool {
	return r.Flags&(ReadFence|LocalFence) == 0 && len(r.Messages) == 1 && !r.isRead()
}

// start makes the request one that has just been posted.
func (r *Request) start() {
	r.Status, r.Cause = Success, nil
	r.progress, r.sent, r.posts, r.answers, r.mark = queued, 0, 0, 0, 0
}

// awaited returns the messages that wait for their responses.
func (r *Request) awaited() []rdmap.Operation {
	if !r.isRead() || r.progress == done {
		return nil
	}
	return r.Messages[r.answers:r.sent]
}
