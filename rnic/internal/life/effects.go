package life

import "urnic/rdmap"

// Effects is what is to be done about an event, in this order. The zero Effects is
// nothing. What completes is returned by Machine.Completed instead.
type Effects struct {
	Tell      Notice       // report it to the program
	Terminate *rdmap.Error // tell the peer by a Terminate message
	Arm       bool         // the time for the end begins: Expired is due after it
	Abort     bool         // reset the connection
	Quiet     bool         // nothing more will be sent; reported once
	End       bool         // the stream ends, which is the receiver's goroutine's affair
	Transmit  bool         // a goroutine must transmit: there is something to send or to decide
}

// And adds the effects of a second event. Both tell, terminate and so on at most once.
func (fx Effects) And(o Effects) Effects {
	if o.Tell.Event != 0 {
		fx.Tell = o.Tell
	}
	if o.Terminate != nil {
		fx.Terminate = o.Terminate
	}
	fx.Arm, fx.Abort, fx.Quiet = fx.Arm || o.Arm, fx.Abort || o.Abort, fx.Quiet || o.Quiet
	fx.End, fx.Transmit = fx.End || o.End, fx.Transmit || o.Transmit
	return fx
}

// A Notice is an asynchronous event for the program. A zero Event is none.
type Notice struct {
	Event     Event
	Err       error
	Terminate *rdmap.Terminate // TerminateReceived
}

// An Event is the type of an asynchronous event of a queue pair.
type Event uint8

// The asynchronous events.
const (
	CloseComplete     Event = iota + 1 // the connection was closed gracefully
	TerminateReceived                  // the peer has ended the stream with a Terminate
	Lost                               // the connection was lost or reset
	BadClose                           // something arrived while it was closing
	BadLLPClose                        // the peer closed while work was outstanding
	Integrity                          // CRC or marker error
	RemoteOperation                    // the peer broke a rule
	Protection                         // the peer touched what it may not touch
	Catastrophic                       // the queue pair has failed for a reason of this side
)
