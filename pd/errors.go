package pd

import "fmt"

// A LimitError reports that a reservation would exceed a limit. Nothing was
// reserved.
type LimitError struct {
	Resource Resource
	Domain   ID // whose limit it is; 0: the device's
	Limit    uint64
	Held     uint64
	Wanted   uint64 // on top of Held
}

// Error names the limit and whose it is.
func (e *LimitError) Error() string {
	whose := "device"
	if e.Domain != 0 {
		whose = fmt.Sprintf("protection domain %d", e.Domain)
	}
	return fmt.Sprintf("pd: limit of the %s: %d %s, of which %d are held; %d more wanted: release some or raise the limit",
		whose, e.Limit, e.Resource, e.Held, e.Wanted)
}

// A BusyError reports that a domain can't be closed yet.
type BusyError struct {
	Domain   ID
	Resource Resource
	Held     uint64
}

// Error names what is still held.
func (e *BusyError) Error() string {
	return fmt.Sprintf("pd: protection domain %d still holds %d %s: release them first", e.Domain, e.Held, e.Resource)
}

// A ClosedError reports that a domain was used after its Close.
type ClosedError struct{ Domain ID }

// Error names the domain.
func (e *ClosedError) Error() string {
	return fmt.Sprintf("pd: protection domain %d is closed", e.Domain)
}
