package rdpllp

import (
	"fmt"

	"urnic/mpa"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

func malformed(format string, args ...any) error {
	return &mpa.Error{Code: mpa.CodeStartup, Reason: fmt.Sprintf(format, args...)}
}

// checkPrivateData returns an error if it does not fit.
func checkPrivateData(b []byte) error {
	if len(b) > llpwire.MaxPrivateData {
		return &mpa.ConfigError{Reason: fmt.Sprintf("%d bytes of private data: at most %d fit", len(b), llpwire.MaxPrivateData)}
	}
	return nil
}
