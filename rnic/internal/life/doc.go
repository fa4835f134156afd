// Package life is the life of one queue pair, without I/O: a [Machine] that processes events and
// returns their effects. It starts no goroutine and no timer, takes no lock and uses no
// connection, so a test can run it step by step, with any order of events.
//
// # Events and effects
//
// The methods of a Machine are the events: a request is posted, the LLP has accepted what was
// sent, a Terminate has arrived, the time is up. Most return [Effects], which the owner must
// carry out. [Machine.Completed] returns the requests that an event has completed. For each
// event, the owner, which has the connection, the goroutines and the memory, does this:
//
//	fx := m.Fail(err, life.Protection)       // the event
//	for _, r := range m.Completed() { … }    // a completion queue entry for each that is not Silent
//	carry out fx, in the order of its fields // tell, send a Terminate, arm the timer, reset, …
//
// A completion or an effect may cause another event: a completion queue that has no slot is
// [Machine.CQFailed]. There are no callbacks, so the owner decides for what it holds its lock.
//
// Two roles of the owner call more methods of the machine:
//
//   - The transmitter calls [Machine.Next] for the next request to begin, and [Machine.Batch] for
//     others like it. It calls [Machine.Posted] when RDMAP has posted a message and
//     [Machine.Accepted] when the LLP has accepted bytes. With nothing more to send, it calls
//     [Machine.Judge], while [Machine.Ending] returns true, and [Machine.CloseOwn], which reports
//     whether to close its half of the stream. It reports that by [Machine.OwnEnded].
//   - The receiver calls [Machine.Arrived] before a segment is placed, while [Machine.Watches]
//     returns true, or [Machine.Heard] afterwards if the state was not Closing, and
//     [Machine.Received] after each look at the stream. The [Course] that it gets says how to
//     continue, and leads to [Machine.Over]: by [Machine.Lingered] after an error, by
//     [Machine.Settled] after the peer's end.
//
// # What is where
//
// state.go has the states and the one function that changes them. machine.go has the beginning
// and the end of streams, received.go the receiver's events, closing.go the graceful end,
// failing.go the other ends. sendqueue.go and request.go are the send queue, turn.go has the
// fences and all other rules that hold a request back, blame.go determines which request is to
// blame for the end of a stream. [RecvQueue], [RNR] and [Pairing], the receive queue, the wait of
// a message for a receive, and the immediate data of a Send, are separate values: the receiver
// uses them while others use the Machine.
//
// All are strict unless a policy says otherwise. [Machine.Follow] and its like ask the policy
// once. Package urnic/internal/door/policy has the possible answers.
//
// Other packages define what requests mean and whether they may be posted (package rnic), the
// order of messages and responses on the stream (packages rdmap and ddp), and which goroutine has
// which role (package drive). Start-up and completion queues are not here either.
//
// # States and events
//
// In the table, a line is an event in a certain case, and a column is the state of the queue
// pair. Error has two columns, as a stream whose connection was reset lives on until its receiver
// has noticed: [Machine.Over]. A cell has the next state, if it changes, and the effects:
//
//	!Event   report an event to the program (named where the owner has not chosen it)
//	T        send a Terminate message
//	A        arm the timer for the end
//	R        reset the connection
//	Q        nothing more will be sent
//	E        the stream ends; the receiver's goroutine ends it
//	X        start to transmit
//
// then what the method returns, and what happens to a request that is in the queue: it completes,
// or is flushed. A dot is no change. A dash is a cell that can't occur: the queue pair can't be
// in that state, there is nothing that the event could be about, or there is no stream. Such an
// event changes nothing: neither the state, nor a request, nor the next stream.
//
// As examples of an owner's choice, [Machine.Received] and [Machine.Fail] have Protection, and
// [Machine.Abort] has Catastrophic. In Terminate, A is missing where the timer is already armed,
// as it is if an error of this side led to Terminate.
//
//	event                                        | Idle              | RTS                                     | Closing                    | Terminate                    | Error, live | Error
//	Connected                                    | RTS               | –                                       | –                          | –                            | –           | –
//	Post                                         | waits             | waits                                   | late                       | late                         | late        | flushes
//	Stop                                         | yes drained       | yes drained                             | no                         | no                           | no          | no
//	Next                                         | –                 | send                                    | wait                       | send                         | send        | –
//	Batch                                        | –                 | 1 begun                                 | 0 begun                    | 1 begun                      | 1 begun     | –
//	Posted                                       | –                 | ·                                       | –                          | ·                            | ·           | –
//	Accepted                                     | –                 | completes                               | ·                          | completes                    | completes   | –
//	Accepted, less                               | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Accepted, after the peer's Terminate         | –                 | –                                       | –                          | ·                            | ·           | –
//	Answered                                     | –                 | completes                               | –                          | completes                    | completes   | –
//	CarriedOut                                   | –                 | completes                               | –                          | completes                    | completes   | –
//	Arrived                                      | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Arrived, as the first                        | –                 | X                                       | X                          | X                            | X           | –
//	Heard, as the first                          | –                 | X                                       | X                          | X                            | X           | –
//	Received nothing to tell                     | –                 | go on                                   | go on                      | go on                        | go on       | –
//	Received anything, bad close                 | go on             | go on                                   | Error !BadClose RQE finish | go on                        | go on       | go on
//	Received Terminate                           | –                 | Terminate !TerminateReceived AEX linger | Error !BadClose RQE finish | !TerminateReceived EX linger | AEX linger  | –
//	Received Violation                           | –                 | Terminate !Protection TAEX linger       | Error !BadClose RQE linger | linger                       | linger      | –
//	Received Violation, as the first             | –                 | Error !Protection RQE finish            | Error !BadClose RQE linger | Error RQE finish             | RE finish   | –
//	Received Ended                               | –                 | AEX settle                              | EX settle                  | EX settle                    | AEX settle  | –
//	Received Ended, as the first, work left      | –                 | Error !BadLLPClose RQE finish           | EX settle                  | Error RQE finish             | RE finish   | –
//	Received Lost                                | –                 | Error !Lost RQE finish                  | Error !Lost RQE finish     | Error RQE finish             | RE finish   | –
//	Disconnect                                   | –                 | EX                                      | EX                         | EX                           | EX          | –
//	Judge, nobody closes                         | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Judge, to close                              | –                 | Closing AE                              | ·                          | ·                            | ·           | –
//	Judge, to close, not all out                 | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Judge, to close, work left                   | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Judge, to close, not all answered            | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Judge, to close, RTR not in                  | –                 | ·                                       | –                          | ·                            | ·           | –
//	Judge, to close, RTR not answered            | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Judge, to close, after a Terminate           | –                 | ·                                       | ·                          | ·                            | ·           | –
//	Judge, the peer has closed                   | –                 | Closing E                               | ·                          | ·                            | ·           | –
//	Judge, the peer has closed, not all out      | –                 | Terminate !BadLLPClose TEX              | ·                          | ·                            | ·           | –
//	Judge, the peer has closed, work left        | –                 | Terminate !BadLLPClose TEX              | ·                          | ·                            | ·           | –
//	Judge, the peer has closed, not all answered | –                 | Terminate !BadLLPClose TEX              | ·                          | ·                            | ·           | –
//	OwnEnded                                     | –                 | Q                                       | Q                          | Q                            | ·           | –
//	Settled                                      | –                 | yes                                     | yes                        | yes                          | no          | –
//	Settled, after Broken                        | –                 | Error !Lost RE no                       | –                          | Error RE no                  | no          | –
//	Lingered, its half has ended                 | –                 | yes                                     | yes                        | yes                          | no          | –
//	Lingered, after Broken                       | –                 | no                                      | –                          | no                           | no          | –
//	Lingered, with an error                      | –                 | no                                      | no                         | no                           | no          | –
//	Over, orderly                                | –                 | Error flushes                           | Idle !CloseComplete        | Error flushes                | flushes     | –
//	Over                                         | –                 | Error flushes                           | Error                      | Error flushes                | flushes     | –
//	Fail                                         | ·                 | Terminate !Protection TAEX              | Error !BadClose RQE        | ·                            | ·           | ·
//	Abort                                        | RE                | Error !Catastrophic RQE                 | Error !Catastrophic RQE    | Error RQE                    | RE          | RE
//	Expired                                      | RE                | Error !Lost RQE                         | Error !Lost RQE            | Error RQE                    | RE          | RE
//	Broken                                       | –                 | AQE                                     | QE                         | QE                           | AE          | –
//	MemoryLost                                   | –                 | Error !Catastrophic RQE                 | Error !Catastrophic RQE    | Error RQE                    | RE          | –
//	CQFailed                                     | idle              | Terminate !Catastrophic TAEX            | Error !Catastrophic RQE    | ·                            | ·           | ·
//	End                                          | Error yes flushes | no                                      | no                         | no                           | no          | no
//	Reset                                        | yes               | no                                      | no                         | no                           | no          | Idle yes
//
// The test of this table generates it from the machine: go test -run TestTable -update.
package life
