package rxdebug

import (
	"errors"
	"fmt"

	"urnic/ulp/rx/wire"
)

var (
	// ErrSilent says that a request was not answered in time.
	ErrSilent = errors.New("rxdebug: no answer")

	// ErrUnsupported says that the server does not know what it was asked for.
	ErrUnsupported = errors.New("rxdebug: the server does not know this request")

	// ErrUnended says that a list has more entries than Config.MaxEntries.
	ErrUnended = errors.New("rxdebug: the server does not end its list")
)

// An AbortError says that the server has answered a request by an abort.
type AbortError struct{ Code wire.Code }

func (e *AbortError) Error() string {
	return fmt.Sprintf("rxdebug: the server refuses debug packets: %v", e.Code)
}

// AbortCode is the code of the abort.
func (e *AbortError) AbortCode() int32 { return int32(e.Code) }

// A VersionError says that a server's version of the debug protocol is from before the
// first one that is documented.
type VersionError struct{ Version byte }

func (e *VersionError) Error() string {
	return fmt.Sprintf("rxdebug: the server has version %q of the debug protocol, and the first one is %q", rune(e.Version), rune(wire.DebugVersionMin))
}
