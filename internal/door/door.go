package door

import (
	"context"

	"urnic/internal/door/latch"
	"urnic/internal/door/policy"
	"urnic/rnic"
)

// Verbs is what rnic does behind the door. The functions of this package say what.
type Verbs interface {
	SetPolicy(cfg *rnic.Config, p policy.Policy)
	SetPolicyOfQP(attr *rnic.QPAttr, p policy.Policy)
	SetPolicyOfCQ(attr *rnic.CQAttr, p policy.Policy)
	SetNum(attr *rnic.QPAttr, num uint32)

	Forget(q *rnic.QP)
	RefuseRemote(q *rnic.QP, rights rnic.Access)
	StopSending(q *rnic.QP) error
	ResumeSending(q *rnic.QP) error
	Outstanding(q *rnic.QP) int
	Unpolled(q *rnic.QP) int

	Fire(c *rnic.CQ)
	Await(ctx context.Context, c *rnic.CQ) error
	Paired(wc *rnic.WC) bool

	DrawKey(b rnic.Bind) rnic.Bind
	Reregister(m *rnic.MR, p *rnic.PD, mem rnic.Memory, access rnic.Access) (*rnic.MR, error)
	Waiting(r *rnic.ConnRequest) bool
}

var verbs = latch.Inside().(Verbs) // package rnic has been initialized: this one imports it

const (
	// OpSendImmediate is a Send with immediate data, which RFC 7306 has not: it is sent
	// as Immediate Data, with the first four octets of SendWR.Immediate and
	// policy.PairMark, before the Send. A peer without policy.PairImmediate completes
	// two receives.
	OpSendImmediate = rnic.OpImmediate + 1
	// EventSQDrained tells of a queue pair after StopSending that all requests that were
	// begun have completed.
	EventSQDrained = rnic.EventSRQShare + 1
)

// SetPolicy sets the policy of a device, which is that of all its objects.
func SetPolicy(cfg *rnic.Config, p policy.Policy) { verbs.SetPolicy(cfg, p) }

// SetPolicyOfQP sets the policy of a queue pair, in place of its device's.
func SetPolicyOfQP(attr *rnic.QPAttr, p policy.Policy) { verbs.SetPolicyOfQP(attr, p) }

// SetPolicyOfCQ sets the policy of a completion queue, in place of its device's.
func SetPolicyOfCQ(attr *rnic.CQAttr, p policy.Policy) { verbs.SetPolicyOfCQ(attr, p) }

// SetNum sets the number of a queue pair, which its device chooses otherwise. Who
// chooses, keeps the numbers apart.
func SetNum(attr *rnic.QPAttr, num uint32) { verbs.SetNum(attr, num) }

// Forget makes a queue pair complete nothing any more: its requests end without a
// completion from now on, and completions that nobody has polled are taken out of its
// completion queues. Reset makes it as it was before. It is for programs that want to hear no
// more of a queue pair that they close or reset.
func Forget(q *rnic.QP) { verbs.Forget(q) }

// RefuseRemote takes rights from the peer, RemoteWrite, RemoteRead and RemoteAtomic,
// whatever the STags grant that it uses: such an access ends the stream as one to memory
// without the right does. It holds from now on, for all streams, until the next call; 0
// refuses nothing, as from the beginning.
func RefuseRemote(q *rnic.QP, rights rnic.Access) { verbs.RefuseRemote(q, rights) }

// StopSending makes further requests wait in the send queue until ResumeSending, the end
// of the stream, or Reset; also before there is a stream. Those that were begun go on;
// EventSQDrained tells when they have completed. Draft-hilland-rddp-verbs has no such state;
// it is SQD of InfiniBand. It returns an *rnic.OpError that wraps an *rnic.StateError if the
// stream is ending or has ended.
func StopSending(q *rnic.QP) error { return verbs.StopSending(q) }

// ResumeSending makes requests be sent again. It returns what StopSending does.
func ResumeSending(q *rnic.QP) error { return verbs.ResumeSending(q) }

// Outstanding returns how many requests in the send queue have not completed.
func Outstanding(q *rnic.QP) int { return verbs.Outstanding(q) }

// Unpolled returns how many messages a queue pair has received whose completions nobody
// has polled yet.
func Unpolled(q *rnic.QP) int { return verbs.Unpolled(q) }

// Fire fires a completion queue if it is armed, as a completion in error would. It is for who
// keeps completions back that are polled, and gives them to others later.
func Fire(c *rnic.CQ) { verbs.Fire(c) }

// Await waits until there is a completion for Poll. It returns what rnic.CQ.Wait does.
func Await(ctx context.Context, c *rnic.CQ) error { return verbs.Await(ctx, c) }

// Paired reports whether the peer has sent immediate data with the Send that wc, of a
// receive, tells of: they are in Immediate. See policy.PairImmediate.
func Paired(wc *rnic.WC) bool { return verbs.Paired(wc) }

// DrawKey chooses the key that a window of type 1 is to have when it is bound next, for who
// must know the STag before that, and returns b with it. Binds of the window must be
// posted in the order in which their keys are drawn.
func DrawKey(b rnic.Bind) rnic.Bind { return verbs.DrawKey(b) }

// Reregister changes the domain and the rights of a region, and from which TO it counts,
// under the STag that it has. mem must name the memory that the region covers. The region
// is the one that is returned from then on, and m must not be used any more; on an error,
// m is as it was. The errors are those of rnic.PD.RegisterMemory, and rnic.ErrBusy while
// windows are bound to the region.
//
// A peer that uses the STag while it changes is refused.
func Reregister(m *rnic.MR, p *rnic.PD, mem rnic.Memory, access rnic.Access) (*rnic.MR, error) {
	return verbs.Reregister(m, p, mem, access)
}

// Waiting reports whether a connection request can still be answered.
func Waiting(r *rnic.ConnRequest) bool { return verbs.Waiting(r) }
