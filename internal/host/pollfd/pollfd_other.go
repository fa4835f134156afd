//go:build !unix

package pollfd

import (
	"errors"
	"fmt"
)

// New returns a descriptor that is not readable. It fails with
// errors.ErrUnsupported on systems where this package knows none.
func New() (*FD, error) {
	return nil, fmt.Errorf("pollfd: %w on this system", errors.ErrUnsupported)
}
