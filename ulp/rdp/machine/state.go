package machine

import "fmt"

// A State is the state of a connection (RFC 908 §3.2.3).
type State uint8

// The states. A Listener is in LISTEN, a Conn never is.
const (
	Closed State = iota
	Listen
	SynSent
	SynRcvd
	Open
	CloseWait
)

var stateNames = [...]string{"CLOSED", "LISTEN", "SYN-SENT", "SYN-RCVD", "OPEN", "CLOSE-WAIT"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// A Name identifies a connection of an endpoint. Version is part of it, as ports are at
// different positions in the headers of the two versions: they never mix.
type Name struct {
	Path          Path
	Version       uint8
	Local, Remote uint16 // ports of RDP
}

func (n Name) String() string {
	local := "*"
	if n.Path.Local.IsValid() {
		local = n.Path.Local.String()
	}
	return fmt.Sprintf("v%d %s:%d>%v:%d", n.Version, local, n.Local, n.Path.Remote, n.Remote)
}

// less reports whether the number a is before b. Numbers wrap: RFC 908 does not say so, but
// 32 bits are used up.
func less(a, b uint32) bool { return int32(a-b) < 0 }

// within reports whether after < n <= after+size.
func within(n, after, size uint32) bool {
	d := n - after
	return d != 0 && d <= size
}
