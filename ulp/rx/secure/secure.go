package secure

import "time"

// A Conn names a connection to its security class.
type Conn struct {
	Epoch    uint32
	ID       uint32 // the connection ID, with the channel's bits zero
	Index    uint8  // the security index
	Checksum bool   // the client's first packet had a checksum
}

// A Packet is what a class knows of a data packet besides its body.
type Packet struct {
	Call    uint32
	Channel uint8
	Seq     uint32
}

// Calls are the call numbers of a connection's four channels. Those of channels that
// have had no call are 0.
type Calls = [4]uint32

// A Protection secures the bodies of a connection's data packets. A body is Overhead
// bytes, then data, then padding up to a multiple of Multiple; it is no shorter than
// Least.
type Protection interface {
	// Overhead is the number of bytes that a body has in front of its data.
	Overhead() int

	// Multiple is what the length of a body is a multiple of: 1 or more.
	Multiple() int

	// Least is the shortest body, in bytes.
	Least() int

	// Seal secures body in place and returns the checksum for the header. data is how
	// many bytes of body are data; body[:Overhead()] is overwritten, and what follows the
	// data is padding. len(body) conforms to the rules above, or Seal returns an error.
	Seal(p Packet, body []byte, data int) (checksum uint16, err error)

	// Open checks a body, decrypts it in place and returns the data in it. The error of a
	// body that fails carries the abort code for the connection, see [Error].
	Open(p Packet, checksum uint16, body []byte) (data []byte, err error)
}

// A Client makes connections with one set of credentials.
type Client interface {
	// Index is the security index for the connections' packets.
	Index() uint8

	// NewConn begins a connection.
	NewConn(c Conn) (ClientConn, error)
}

// A ClientConn is a client's side of a connection.
type ClientConn interface {
	Protection

	// Respond answers a challenge. calls are the call numbers of the channels at this
	// moment. An error ends the connection with the code that it carries.
	Respond(challenge []byte, calls Calls) (response []byte, err error)
}

// A Server accepts connections.
type Server interface {
	// Index is the security index that the server answers to.
	Index() uint8

	// NewConn begins a connection of a client. It keeps little and computes nothing: a
	// client that is not yet known may have asked for it.
	NewConn(c Conn) (ServerConn, error)
}

// A ServerConn is a server's side of a connection. Its Protection may be used once
// Authenticated reports true.
type ServerConn interface {
	Protection

	// Authenticated reports whether calls may be served: a response was accepted, and its
	// ticket has not expired by now. An error says that it has.
	Authenticated(now time.Time) (bool, error)

	// Challenge returns the body of a challenge. A repeated one is the same.
	Challenge() ([]byte, error)

	// Verify judges a response that came at now, and returns the call numbers in it. An
	// error ends the connection with the code that it carries.
	Verify(response []byte, now time.Time) (Calls, error)

	// Caller is who the client has proved to be.
	Caller() Caller
}

// A Caller is who makes a call. The zero Caller is anybody.
type Caller struct {
	Name     string // "user" or "user.instance"; empty for nobody in particular
	Realm    string // or cell
	Class    string // of security: "rxkad"; empty for null security
	Level    string // of protection: "clear", "auth" or "crypt"
	Key      uint32 // version of the service's key that the ticket was made with
	Expires  time.Time
	Verified bool // a response was accepted
}

// A Describer is a [ClientConn] or a [ServerConn] that can say what debug packets report about it.
type Describer interface {
	Describe() Description
}

// A Description is what debug packets report about a connection's security.
type Description struct {
	Type          uint8 // of the class: 3 is rxkad
	Level         uint8 // of protection, as the class numbers them
	Authenticated bool  // a response was accepted
	Expires       time.Time
}

// An Error is an error with a code for an abort packet.
type Error interface {
	error

	// AbortCode is the code.
	AbortCode() int32
}
