package profile

import (
	"context"
	"fmt"
	"net"
	"time"

	"urnic/conformance"
	"urnic/conformance/rdpconn"
	"urnic/conformance/service"
	"urnic/internal/host/listen"
)

// A Listener is where a target connects to: a *net.TCPListener, or over RDP a *rdpconn.Listener.
type Listener interface {
	net.Listener
	SetDeadline(t time.Time) error
}

// A network opens connections to a target: of TCP, or of RDP.
type network struct{ rdp bool }

func (n network) llp() conformance.LLP {
	if n.rdp {
		return conformance.RDP
	}
	return conformance.TCP
}

// rdpOverhead is what stands in a segment of RDP besides DDP's segment: 20 bytes that are counted for the
// header of IP, RDP's header, and header and checksum of a message.
const rdpOverhead = 20 + 18 + 12

// options returns how a connection of RDP is opened. The MULPDU that a Setup wants of the target follows from what the tester
// accepts.
func options(setup conformance.Setup) rdpconn.Options {
	o := rdpconn.Options{Unsequenced: setup.Unsequenced}
	if n := setup.Start.MULPDU; n > 0 {
		o.MaxSegment = n + rdpOverhead
	}
	return o
}

// start is what the target is told of a start-up.
func (n network) start(setup conformance.Setup) service.Start {
	s := setup.Start
	if n.rdp {
		s.MULPDU = 0 // it is seen to by options
	}
	return s
}

// dial opens a connection within the timeout.
func (n network) dial(ctx context.Context, address string, setup conformance.Setup, timeout time.Duration) (net.Conn, error) {
	if !n.rdp {
		d := net.Dialer{Timeout: timeout, Control: segmentSize(setup.MSS)}
		return d.DialContext(ctx, "tcp", address)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := rdpconn.Dial(ctx, address, options(setup))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// listen listens for one target.
func (n network) listen(ctx context.Context, address string, setup conformance.Setup) (Listener, error) {
	if n.rdp {
		l, err := rdpconn.Listen(ctx, address, options(setup))
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	config := net.ListenConfig{Control: segmentSize(setup.MSS)}
	l, err := config.Listen(ctx, listen.Network(address), address)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// An OtherLLPError reports that the RNIC of a test service is on another lower layer than the run.
type OtherLLPError struct {
	Has, Wants conformance.LLP
}

// Error names both layers.
func (e *OtherLLPError) Error() string {
	return fmt.Sprintf("the RNIC of the test service has %s as its lower layer, not %s", e.Has, e.Wants)
}
