// Package rnic is an RNIC in software: the verbs that RDMA programs know
// (draft-hilland-rddp-verbs), over iWARP (RFC 5040, 5041, 5044, 6581, 7306) on
// ordinary TCP connections. Peers are other programs with this package, Linux
// with siw, or RDMA hardware that speaks iWARP.
//
// # The objects
//
// A program opens a [Device], and creates all other objects from it:
//
//	Device ── PD ──┬── QP   queue pair: one end of a connection
//	  │            ├── SRQ  receives that several queue pairs share
//	  │            ├── MR   memory region: memory that is registered
//	  │            └── MW   memory window: a part of a region, for the peer
//	  ├── CQ                completion queue: where work requests end
//	  ├── CompletionChannel reports which completion queues have fired
//	  └── Listener          accepts connections
//
// A [QP] has a send queue and a receive queue. [QP.PostSend] and [QP.PostRecv]
// add work requests. A work request names memory by SGEs, which are pieces of
// regions. Each work request ends with a completion [WC] in a [CQ], in the
// order of its queue. A Send goes into the oldest receive of the peer. RDMA
// Write, RDMA Read and the atomics use a region or window of the peer, named by
// an STag and an offset. The peer's program has to send both beforehand. It
// takes no part in the access itself.
//
// A [PD], protection domain, groups objects: a queue pair uses only regions of
// its own domain, and so does its peer.
//
// # A first program
//
// This one ignores errors. The examples of [QP.Connect] and [QP.PostSend]
// handle them, and show the other side.
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
//		// err: no more completions follow; wc.Err(): how request wc.ID has ended
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
//   - What the RNIC does for a request happens before the [CQ.Poll], [CQ.Wait]
//     or [CQ.All] that returns its completion returns. It does not matter how
//     the program was notified: channels and descriptors only say that polling
//     is worthwhile.
//   - What the peer has written by RDMA Write happens before the completion of
//     a receive for a Send or for Immediate Data that it has posted later on
//     the same connection. Nothing else indicates that a Write has arrived.
//   - A peer's RDMA Read of memory happens before the completion of a receive for
//     a Send that it has posted after its Read had completed, or with
//     [FlagReadFence].
//   - When a call that closes or invalidates an STag has returned, or the
//     completion of the request that does is polled, the RNIC no longer touches
//     the memory through that STag, whatever was outstanding.
//
// Between such messages, memory that is open to a peer belongs to the peer. It
// alone decides when it writes there: a program that reads it at the same time
// has a data race. It may see any mixture of bytes, and must not trust them.
// Memory for atomics must be aligned to 8 bytes. It holds numbers in the byte
// order of the machine, and package sync/atomic may access it meanwhile.
//
// A region keeps Go memory alive until it is closed. Memory that Go does not
// own must stay mapped for as long; see [Memory].
//
// # What is fast
//
// A goroutine in [CQ.Wait] is woken by the network itself if only one
// connection completes in the queue. With several, a goroutine of the RNIC
// wakes it. A program that calls [CQ.Poll] in a loop needs no other goroutine:
// each call looks at the sockets of up to eight connections, in turn. One queue
// for the sends and the receives of a connection is faster than two.
//
// Lists of requests are cheaper than single ones: what one call posts is sent
// by one system call, if it fits. It also saves time to request a completion
// for only one in ten Sends ([FlagUnsignaled]), and to send some tens of bytes
// as inline data. Requests allocate nothing, once the queues have grown to the
// size that the program uses.
//
// # What can go wrong
//
// Errors come in three ways:
//
//   - A call returns an error, an [*OpError] that names operation and object.
//     For a list of requests, it says which one was refused ([*WRError]); those
//     before it are posted. The connection continues. An object that no verb
//     has made, such as nil, is an error too ([ErrNotMade]), and so is a nil
//     context ([ErrNoContext]). Methods without an error then return zeros.
//   - A work request completes with a [Status] other than success; [WC.Err]
//     converts it to an error. The request was carried out and failed. That
//     ends the connection, so all later requests complete as flushed.
//   - An asynchronous [Event] reports what belongs to no request: the peer has
//     closed the connection, broken a rule or sent a Terminate message, or a
//     completion queue has overflowed. Programs may fetch events with
//     [Device.WaitEvent], [Device.PollEvent] or through [Device.EventFD]; none
//     has to.
//
// [QP.State] returns the state of a queue pair, [QP.Err] why its connection has
// ended. An error ends one connection, never the device. The errors of RDMAP,
// DDP and MPA underneath have the clause that was broken, and the code of the
// Terminate.
//
// # Waiting and ending
//
// Calls that can wait take a context. When it ends, they return an error that
// wraps the context's. [QP.Disconnect] closes a connection gracefully,
// [QP.Terminate] with a message to the peer, [QP.Abort] at once. [QP.Reset]
// makes the queue pair ready for the next connection. Close releases an object;
// it fails while other objects use it ([ErrBusy]). Close of the device ends all
// that is left, and leaves no goroutine.
//
// A connection request waits for the program's answer for a limited time
// (Config.AnswerTimeout), and is dropped when the peer closes the connection.
// It delays no other listener. Connections that send no Request delay nothing:
// they make room for newer ones.
//
// A peer that stops in the middle of an FPDU, or does not read, makes its
// stream keep buffers. They are charged to pd.StreamOctets. When that limit is
// exceeded, the streams that have waited longest end ([ErrStalled]).
//
// What a device and each domain may hold is limited; see [Config], package pd
// and [Device.Held]. [Config] also has hooks for observation: a recording for
// Wireshark, a trace of messages, a log.
//
// # What there is not
//
// Not supported are datagrams and multicast; SCTP; encryption; STag 0 and other
// privileged access to memory; shared regions; Reads with a window as their
// sink; changes of IRD and ORD of an established connection. The RNIC has no
// processor but the program's: goroutines that only poll should leave a
// processor to the others.
package rnic
