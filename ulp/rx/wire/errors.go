package wire

import "fmt"

// A ShortError reports bytes that are too few for what they should be.
type ShortError struct {
	What       string // what they should be: "header", "acknowledgement"
	Have, Want int    // bytes; Want is the least
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("rx: %s too short: %d bytes, want at least %d", e.What, e.Have, e.Want)
}

// A JumboError reports a jumbogram that ends inside one of its packets.
type JumboError struct {
	Packet int // which of the datagram's packets, from 1
	Have   int // bytes that are left for it
	Want   int // the least for a packet that says that another one follows
}

func (e *JumboError) Error() string {
	return fmt.Sprintf("rx: jumbogram cut short: packet %d has %d bytes, and says that another packet follows, which takes %d",
		e.Packet, e.Have, e.Want)
}
