package wire

import "fmt"

// A Code is the code of an abort packet. The protocol has some of its own; services have
// others (draft §4).
type Code int32

// The codes of Rx itself.
const (
	CallDead         Code = -1   // the peer is silent
	InvalidOperation Code = -2   // no such service or security index; or a write after a read
	CallTimeout      Code = -3   // the call took too long, or nothing moved for too long
	EOF              Code = -4   // not used
	ProtocolError    Code = -5   // the peer broke the protocol
	UserAbort        Code = -6   // the caller gave up
	AddrInUse        Code = -7   // not sent
	MessageSize      Code = -8   // a packet too large for the network; not sent
	Restarting       Code = -100 // the server is not ready; try again
)

// The codes of the RPC layer.
const (
	CCMarshal   Code = -450 - iota // the client could not encode its arguments
	CCUnmarshal                    // the client could not decode the reply
	SSMarshal                      // the server could not encode its reply
	SSUnmarshal                    // the server could not decode the arguments
	Decode                         // the request has no opcode
	Opcode                         // the server does not know the opcode
	SSXDRFree                      // the server could not free memory
	CCXDRFree                      // the client could not free memory
)

// RxkadBase is the first code of the security class rxkad.
const RxkadBase Code = 19270400

// The codes of rxkad.
const (
	RxkadInconsistent       = RxkadBase + iota // the security class itself failed; Linux: another security index
	RxkadPacketShort                           // a challenge, a response or a protected packet is too short
	RxkadLevelFail                             // the level of protection is too low
	RxkadTicketLength                          // the ticket is too short or too long
	RxkadOutOfSequence                         // a nonce or a checksum is not the one expected
	RxkadNoAuth                                // there is no authentication
	RxkadBadKey                                // the session key is not good
	RxkadBadTicket                             // the ticket can not be decrypted or makes no sense
	RxkadUnknownKey                            // the server has no key of this version
	RxkadExpired                               // the ticket has expired
	RxkadSealedInconsistent                    // what was encrypted does not make sense
	RxkadDataLength                            // the data is too long
	RxkadIllegalLevel                          // there is no such level of protection
)

var codeNames = map[Code]string{
	CallDead: "RX_CALL_DEAD", InvalidOperation: "RX_INVALID_OPERATION", CallTimeout: "RX_CALL_TIMEOUT", EOF: "RX_EOF",
	ProtocolError: "RX_PROTOCOL_ERROR", UserAbort: "RX_USER_ABORT", AddrInUse: "RX_ADDRINUSE", MessageSize: "RX_MSGSIZE",
	Restarting: "RX_RESTARTING",
	CCMarshal:  "RXGEN_CC_MARSHAL", CCUnmarshal: "RXGEN_CC_UNMARSHAL", SSMarshal: "RXGEN_SS_MARSHAL",
	SSUnmarshal: "RXGEN_SS_UNMARSHAL", Decode: "RXGEN_DECODE", Opcode: "RXGEN_OPCODE", SSXDRFree: "RXGEN_SS_XDRFREE",
	CCXDRFree:         "RXGEN_CC_XDRFREE",
	RxkadInconsistent: "RXKADINCONSISTENCY", RxkadPacketShort: "RXKADPACKETSHORT", RxkadLevelFail: "RXKADLEVELFAIL",
	RxkadTicketLength: "RXKADTICKETLEN", RxkadOutOfSequence: "RXKADOUTOFSEQUENCE", RxkadNoAuth: "RXKADNOAUTH",
	RxkadBadKey: "RXKADBADKEY", RxkadBadTicket: "RXKADBADTICKET", RxkadUnknownKey: "RXKADUNKNOWNKEY",
	RxkadExpired: "RXKADEXPIRED", RxkadSealedInconsistent: "RXKADSEALEDINCON", RxkadDataLength: "RXKADDATALEN",
	RxkadIllegalLevel: "RXKADILLEGALLEVEL",
}

// String is the usual name of the code, with the number. A code of a service is shown as
// the name of its table and its place there, if its number has one.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return fmt.Sprintf("%s (%d)", name, int32(c))
	}
	if table := c.Table(); table != "" {
		return fmt.Sprintf("%s+%d (%d)", table, c&0xff, int32(c))
	}
	return fmt.Sprintf("%d", int32(c))
}

// Table is the name of the table that the code is from, if it is numbered as Unix error
// tables are: the name, in up to four characters of six bits, stands above the low eight
// bits. Services of AFS number their codes so. Other codes have no table.
func (c Code) Table() string {
	if c < 0 {
		return ""
	}
	const chars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	var name [4]byte
	n := 0
	for shift := 18; shift >= 0; shift -= 6 {
		digit := uint32(c) >> 8 >> shift & 0x3f
		switch {
		case digit != 0:
			name[n] = chars[digit-1]
			n++
		case n > 0: // no character within the name
			return ""
		}
	}
	return string(name[:n])
}
