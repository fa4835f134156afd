// Package rnic is an RNIC in software: the verbs that RDMA programs know
// (draft-hilland-rddp-verbs), over iWARP (RFC 5040, 5041, 5044, 6581, 7306) on
// ordinary TCP connections. Peers are other programs with this package, Linux
// with siw, or RDMA hardware that speaks iWARP.
//
// # The objects
//
// A program opens a [Device] and makes everything else from it:
//
//	Device ── PD ──┬── QP   queue pair: one end of a connection
//	  │            ├── SRQ  receives that several queue pairs share
//	  │            ├── MR   memory region: memory that is registered
//	  │            └── MW   memory window: a part of a region, for the peer
//	  ├── CQ                completion queue: where work requests end
//	  ├── CompletionChannel tells which completion queues have something
//	  └── Listener          accepts connections
//
// A [QP] has a send queue and a receive queue. [QP.PostSend] and [QP.PostRecv]
// add work requests, which name memory by SGEs, pieces of regions; each of them
// ends with a completion [WC] in a [CQ], in the order of its queue. A Send goes
// into the oldest receive of the peer. RDMA Write, RDMA Read and the atomics use
// a region or window of the peer, named by its STag and an offset, which the
// peer's program has sent over somehow; that program takes no part in it.
//
// A [PD], protection domain, says what belongs together: a queue pair uses
// regions of its own domain only, and so does its peer.
//
// # A first program
//
// With errors left out; the examples of [QP.Connect] and [QP.PostSend] have
// them, and the other side.
//
//	dev, _ := rnic.Open(rnic.Config{})
//	defer dev.Close()
//	pd, _ := dev.AllocPD()
//	cq, _ := dev.CreateCQ(rnic.CQAttr{})
//	qp, _ := pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
//
//	buf := make([]byte, 4096)
//	mr, _ := pd.Register(buf, rnic.LocalWrite)
//	qp.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(0, len(buf))}})
//	qp.Connect(ctx, "server:7174", rnic.ConnParam{})
//	qp.PostSend(rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: []byte("hello")})
//	for wc, err := range cq.All(ctx) {
//		// err: nothing comes any more; wc.Err(): how request wc.ID has ended
//	}
//
// # Whose memory it is
//
// The RNIC works on the program's memory from goroutines of its own, and in the
// calls of goroutines that post, poll and wait. The Go memory model applies, and
// the race detector watches. These are the edges:
//
//   - What a program does with memory before it posts a request that names it
//     happens before the RNIC uses it for that request. Until the completion,
//     data to be sent must not be changed, and memory of receives, Reads and
//     atomics must not be touched. The request itself is copied: SGL, Inline and
//     the list may be used again at once.
//   - What the RNIC does for a request happens before the [CQ.Poll], [CQ.Wait] or
//     [CQ.All] that returns its completion returns. It does not matter who was
//     told, or how: channels and descriptors say only that it is worth to poll.
//   - What the peer has written by RDMA Write happens before the completion of a
//     receive for a Send or for Immediate Data that it has posted later on the
//     same connection. Nothing else tells that a Write has arrived.
//   - A peer's RDMA Read of memory happens before the completion of a receive for
//     a Send that it has posted after its Read had completed, or with
//     [FlagReadFence].
//   - When a call that closes or invalidates an STag has returned, or the
//     completion of the request that does is polled, the RNIC touches the memory
//     through that STag no more, whatever was under way.
//
// Between such messages, memory that is open to a peer belongs to the peer. It
// alone decides when it writes there: a program that looks at the same time has
// a data race, which sees any mixture of octets, and must not trust what it sees.
// Memory for atomics is aligned to 8 octets, holds numbers in the byte order of
// the machine, and may be used with package sync/atomic meanwhile.
//
// A region keeps Go memory alive until it is closed. Memory that Go does not own
// must stay mapped as long; see [Memory].
//
// # What is fast
//
// A goroutine in [CQ.Wait] is woken by the network itself if one connection
// completes in the queue; with several, by a goroutine of the RNIC. A program that
// calls [CQ.Poll] again and again needs nobody else: each call looks at the sockets
// of up to eight connections, in turn. One queue for sends and receives of a
// connection is better than two.
//
// Lists of requests are cheaper than single ones: what one call posts leaves in
// one system call, if it fits. So is asking for a completion of each tenth Send
// only ([FlagUnsignaled]), and inline data for some ten octets. Nothing is
// allocated for a request, once the queues have grown to their use.
//
// # What can go wrong
//
// Errors come in three ways:
//
//   - A call returns an error, an [*OpError] that names operation and object. Of
//     a list of requests, it says which one was refused ([*WRError]); those
//     before it are posted. The connection goes on. Objects that no verb has
//     made, nil among them, are errors too ([ErrNotMade]), and so is a nil
//     context ([ErrNoContext]); methods without an error return zeros then.
//   - A work request completes with a [Status] other than success; [WC.Err] makes
//     an error of it. It was carried out and failed, which ends the connection,
//     so that all requests behind it complete as flushed.
//   - An asynchronous [Event] tells what no request has asked for: the peer has
//     closed the connection, broken a rule or sent a Terminate message, a
//     completion queue has overflowed. They are fetched with [Device.WaitEvent],
//     [Device.PollEvent] or through [Device.EventFD]; nobody has to.
//
// [QP.State] and [QP.Err] say how a connection stands and why it has ended. An
// error ends one connection, never the device. The errors of RDMAP, DDP and MPA
// underneath carry the clause that was broken, and the code of the Terminate.
//
// # Waiting and ending
//
// Whatever can wait takes a context, and returns an error that wraps the
// context's when it ends. [QP.Disconnect] closes a connection gracefully,
// [QP.Terminate] with a message to the peer, [QP.Abort] at once; [QP.Reset] makes
// the queue pair ready for the next one. Close of an object gives it up; one that
// others use says so ([ErrBusy]). Close of the device ends all that is left, and
// no goroutine stays.
//
// A request of a peer waits for the program's answer only so long
// (Config.AnswerTimeout), and is dropped when the peer goes. It holds up no other
// listener. Connections that send no Request hold up nobody: they make room for
// newer ones.
//
// A peer that stops in the middle of an FPDU, or does not read, makes its stream keep
// buffers. They are charged to pd.StreamOctets. When that limit is exceeded, the
// streams end that have waited for longest ([ErrStalled]).
//
// What a device and each domain may hold is limited; see [Config], package pd and
// [Device.Held]. [Config] also has the hooks to see what happens: a recording for
// Wireshark, a trace of messages, a log.
//
// # What there is not
//
// Datagrams and multicast; SCTP; encryption; STag 0 and other privileged access
// to memory; regions that are shared; Reads with a window as their sink; changes of IRD and ORD on a
// living connection. There is no processor but the program's: goroutines that do
// nothing but poll should leave one to the others.
package rnic
