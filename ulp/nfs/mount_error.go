package nfs

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"urnic/ulp/oncrpc/rpcbind"
)

// A MountServiceError says where a server's MOUNT was looked for, and why it could not be
// asked there. Give its port as Target.MountPort if it is at another one.
type MountServiceError struct {
	Tries []MountTry
}

// A MountTry is a port that was tried: one of MOUNT, or that of rpcbind, which could tell.
type MountTry struct {
	Port int // of MOUNT; 0: rpcbind's
	Err  error
}

// Error names the ports, and each cause once.
func (e *MountServiceError) Error() string {
	var causes []string
	ports := make(map[string][]string)
	for _, t := range e.Tries {
		cause := t.cause()
		if ports[cause] == nil {
			causes = append(causes, cause)
		}
		ports[cause] = append(ports[cause], t.port())
	}
	for i, cause := range causes {
		causes[i] = "port " + strings.Join(ports[cause], " and ") + ": " + cause
	}
	return fmt.Sprintf("MOUNT can't be asked at %s; if it has another port, give that as mountport", strings.Join(causes, ", nor at "))
}

// Unwrap returns the errors of the tries.
func (e *MountServiceError) Unwrap() []error {
	errs := make([]error, 0, len(e.Tries))
	for _, t := range e.Tries {
		errs = append(errs, t.Err)
	}
	return errs
}

func (t *MountTry) port() string {
	if t.Port == 0 {
		return rpcbind.Port + " (rpcbind)"
	}
	return fmt.Sprint(t.Port)
}

// cause returns why, without the addresses, which the error names itself.
func (t *MountTry) cause() string {
	if e := (*net.OpError)(nil); errors.As(t.Err, &e) && e.Op == "dial" {
		if inner := errors.Unwrap(e.Err); inner != nil { // "connect: " precedes it
			return inner.Error()
		}
		return e.Err.Error()
	}
	return t.Err.Error()
}
