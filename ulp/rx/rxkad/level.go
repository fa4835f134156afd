package rxkad

import "fmt"

// A Level is how much of a packet is protected.
type Level uint32

// The levels. Each one includes those before it.
const (
	Clear Level = iota // a checksum over the packet's call number, channel and sequence number
	Auth               // and the length and the first bytes of the data are encrypted
	Crypt              // and all data is encrypted
)

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case Clear:
		return "clear"
	case Auth:
		return "auth"
	case Crypt:
		return "crypt"
	}
	return fmt.Sprintf("level %d", uint32(l))
}

// ParseLevel returns the level of a name.
func ParseLevel(name string) (Level, error) {
	for l := Clear; l <= Crypt; l++ {
		if name == l.String() {
			return l, nil
		}
	}
	return 0, fmt.Errorf("rxkad: no level %q: use clear, auth or crypt", name)
}

// overhead is how long the security header is in front of the data.
func (l Level) overhead() int {
	return 4 * int(l)
}

// multiple is what the length of a body is a multiple of.
func (l Level) multiple() int {
	if l == Crypt {
		return 8
	}
	return 1
}

// least is the length of the shortest body: one block, if any is encrypted.
func (l Level) least() int {
	if l == Clear {
		return 0
	}
	return 8
}
