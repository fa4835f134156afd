package rnic

import (
	"errors"
	"fmt"

	"urnic/pd"
)

// A quota is the account that an object is charged to: the device's or a
// domain's.
type quota interface {
	Reserve(r pd.Resource, n uint64) error
	Release(r pd.Resource, n uint64)
}

// An amount is how much of a resource an object has reserved.
type amount struct {
	resource pd.Resource
	n        uint64
}

// ofDomain converts the error of a domain that is closed, or in use, to one of
// this package.
func ofDomain(err error) error {
	if e := (*pd.ClosedError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if e := (*pd.BusyError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}
