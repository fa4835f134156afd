package wire

import (
	"fmt"
	"strings"
)

// A Type is the type of a packet (draft §4).
type Type uint8

// The types of packets (draft §9.1).
const (
	TypeData      Type = 1 + iota // a part of a call's request or reply
	TypeAck                       // which packets have arrived; see Ack
	TypeBusy                      // the channel still has another call
	TypeAbort                     // the call or the connection has ended with a code
	TypeAckAll                    // everything has arrived
	TypeChallenge                 // asks a client who it is
	TypeResponse                  // answers a challenge
	TypeDebug                     // asks for statistics, or tells them
	TypeParams1                   // never used for anything, like the next three
	TypeParams2
	TypeParams3
	TypeParams4
	TypeVersion // asks for the version of the software, or tells it
)

var typeNames = [...]string{
	TypeData: "data", TypeAck: "ack", TypeBusy: "busy", TypeAbort: "abort", TypeAckAll: "ackall",
	TypeChallenge: "challenge", TypeResponse: "response", TypeDebug: "debug", TypeParams1: "params1",
	TypeParams2: "params2", TypeParams3: "params3", TypeParams4: "params4", TypeVersion: "version",
}

// Known reports whether the draft has the type.
func (t Type) Known() bool { return TypeData <= t && t <= TypeVersion }

func (t Type) String() string {
	if t.Known() {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Flags are the flags of a packet (draft §3, §9.1).
type Flags uint8

// The flags. FlagJumbo and FlagSlowStart are one bit: it is FlagJumbo in data packets and
// FlagSlowStart in acknowledgements.
const (
	FlagClient     Flags = 1 << iota // CLIENT-INITIATED: from the client of the connection
	FlagRequestAck                   // REQUEST-ACK: acknowledge at once
	FlagLast                         // LAST-PACKET: the last data in this direction
	FlagMore                         // MORE-PACKETS: others of the same burst follow at once
	FlagReserved
	FlagJumbo // JUMBO-PACKET: another packet follows in this datagram

	FlagSlowStart = FlagJumbo // SLOW-START-OK: the sender knows slow start
)

// Names names the flags that are set in a packet of type t, as the draft spells them.
func (f Flags) Names(t Type) string {
	names := [8]string{"CLIENT-INITIATED", "REQUEST-ACK", "LAST-PACKET", "MORE-PACKETS", "0x10", "0x20", "0x40", "0x80"}
	switch t {
	case TypeData:
		names[5] = "JUMBO-PACKET"
	case TypeAck:
		names[5] = "SLOW-START-OK"
	default:
	}
	var set []string
	for i, name := range names {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return strings.Join(set, "|")
}
