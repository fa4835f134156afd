package main

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"urnic/internal/host/plural"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpfile"
)

// errRDPSilent says that nobody has answered a request to connect in time.
var errRDPSilent = errors.New("no answer in time")

// adviseDial says what to do about a connection that could not be opened.
func (o *rdpFlags) adviseDial(err error, to netip.AddrPort, timeout time.Duration) error {
	where := o.place(to, uint16(o.port))
	switch {
	case errors.Is(err, machine.ErrRefused):
		return advise(err, "nobody listens at %s: start `urnic rdp recv` there first, or give its port with --port", where)
	case errors.Is(err, errRDPSilent):
		return advise(err, "no answer from %s within %v: check the address, and whether a firewall lets RDP pass; or wait longer with --connect-timeout", where, timeout)
	case errors.Is(err, machine.ErrUnreachable):
		return advise(err, "no answer from %s: check the address, and whether a firewall lets RDP pass; or give another --version", where)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return advise(err, "no route to %v%s: check the address and this machine's routes", to.Addr(), errno(err))
	case errors.Is(err, machine.ErrBadLimits):
		return advise(err, "%s accepts only segments too small for data: it must allow larger ones", where)
	}
	return err
}

// adviseRDPListen says what to do about an address that an endpoint can't have.
func adviseRDPListen(err error, at netip.AddrPort) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return advise(err, "another program has UDP port %d%s: give another one, such as :%d, and name it to the peer", at.Port(), errno(err), at.Port()+1)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "%v is no address of this machine: give one of its own, or none to listen at all addresses%s", at.Addr(), errno(err))
	case errors.Is(err, syscall.EACCES):
		return advise(err, "UDP port %d is for privileged programs: give one from 1024 on%s", at.Port(), errno(err))
	case errors.Is(err, syscall.EPERM):
		return advise(err, "--carrier ip needs the privilege CAP_NET_RAW%s: run as root, or leave it out for UDP", errno(err))
	}
	return err
}

// adviseRDPSend says what to do about a file that could not be sent.
func (o *rdpFlags) adviseSend(err error, to netip.AddrPort) error {
	switch {
	case errors.Is(err, rdpfile.ErrEarly):
		return advise(err, "%s closed the connection before it had the whole file: see its messages", o.place(to, uint16(o.port)))
	case errors.Is(err, machine.ErrUnreachable):
		return advise(err, "%s does not answer any more: it or the network is down", o.place(to, uint16(o.port)))
	}
	return err
}

// adviseReceive says what to do about a file that was not received.
func adviseReceive(err error, from netip.AddrPort, n int64) error {
	switch {
	case errors.Is(err, rdpfile.ErrShort):
		return advise(err, "%v ended the connection after %s, in the middle of the file: have it sent again", from, plural.Count(n, "byte"))
	case errors.Is(err, rdpfile.ErrHoles) && !errors.Is(err, machine.ErrUnreachable):
		return advise(err, "%v sent an incomplete file: have it sent again", from)
	case errors.Is(err, machine.ErrUnreachable):
		return advise(err, "%v does not answer any more, after %s, and the file may be incomplete", from, plural.Count(n, "byte"))
	}
	return fmt.Errorf("%v: %w", from, err)
}
