// Package drive decides which goroutine does the work of a connection. Of the work it knows
// only "pump this, waiting or not" ([Pump]).
//
// There are two roles; only a goroutine that has one works on the connection. The transmitter
// sends what there is to send. The receiver processes what arrives. A [Driver] passes the
// roles between
//
//   - posters, which have something to send ([Driver.Kick]): one that finds the transmitter's
//     role idle takes it, so that no other goroutine need be woken. After a few passes, or if
//     the socket is full, another goroutine continues;
//   - pollers, which are programs that poll in a loop ([Group.Poll]): their calls receive, and
//     send what was left when the socket was full;
//   - waiters, which are programs that wait for completions ([Group.Wait]): one that waits at
//     a single connection receives for it itself. Waking a goroutine that then wakes the
//     program's would double the latency;
//   - the connection's own goroutine, which serves it while its program does something else.
//     It receives unless a program does.
//
// A watch returns the receiver's role to the goroutine once no program comes back for it, see
// patience. A waiter that receives is woken by Interrupt, any other by a token, see
// [Group.Wake].
//
// # The transmitter's role
//
// The columns are events. There is a kick. The transmitter begins a pass, finds nothing more
// (rest), or leaves the rest to a poller (park). The poller no longer polls (unpark).
// Transmission has to stop (stop). A dot says that nothing changes.
//
//	          kick     pass     rest     park     unpark   stop
//	idle      busy     .        .        .        .        stopped
//	busy      again    .        idle     parked   .        stopping
//	again     .        busy     .        parked   .        stopping
//	parked    busy     .        .        .        busy     stopped
//	stopping  .        stopped  .        .        .        .
//	stopped   .        .        .        .        .        .
//
// A goroutine that makes idle or parked busy by a kick transmits. One that does so by unpark
// starts a goroutine that transmits. The one that makes it stopped notifies [Driver.Stop].
//
// # The receiver's role
//
// A program asks for the role (ask). The goroutine is interrupted and releases it (letGo). A
// program takes the role and drops it, or settles, which leaves what has arrived to the
// goroutine. The role is recalled for the goroutine ([Driver.GiveBack]). The connection is
// about to end ([Driver.End]).
//
//	           ask        letGo      take       drop       settle     recall     end
//	goroutine  asked      .          .          .          .          .          kept
//	asked      .          free       .          .          .          goroutine  kept
//	free       .          .          program    .          .          goroutine  kept
//	program    .          .          .          free       goroutine  recalled   ending
//	recalled   .          .          .          goroutine  goroutine  .          ending
//	ending     .          .          .          kept       kept       .          .
//	kept       .          .          .          .          .          .          .
//
// A transition to free sets the watch and wakes a waiter. One to recalled or ending interrupts
// the program. One from free or from a program to the goroutine wakes that goroutine.
package drive
