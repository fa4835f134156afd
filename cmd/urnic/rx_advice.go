package main

import (
	"context"
	"errors"
	"net/netip"
	"syscall"

	"urnic/ulp/rx"
	"urnic/ulp/rx/wire"
)

// adviseRX says what to do about a call that has failed.
func adviseRX(ctx context.Context, err error, addr netip.AddrPort, service uint16) error {
	var a rx.Aborter
	var local *localError
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.As(err, &local): // which has had the call aborted
		return local
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(err, "nobody listens at %v%s: start the server, or give the port where it listens", addr, errno(err))
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return advise(err, "no route to %v%s: check the address and this machine's routes", addr, errno(err))
	case !errors.As(err, &a):
		return err
	}
	switch code := wire.Code(a.AbortCode()); code {
	case wire.CallDead:
		return advise(err, "%v does not answer, %v: check address and port, or wait longer with --timeout", addr, code)
	case wire.InvalidOperation:
		return advise(err, "%v refuses the connection, %v: it has no service %d, or not with this security", addr, code, service)
	case wire.Opcode:
		return advise(err, "service %d at %v does not know the operation, %v", service, addr, code)
	case wire.SSUnmarshal, wire.Decode:
		return advise(err, "service %d at %v can't decode the request, %v: give other arguments", service, addr, code)
	case wire.RxkadLevelFail:
		return advise(err, "%v wants a higher level of security, %v: give another --level", addr, code)
	case wire.RxkadUnknownKey, wire.RxkadBadTicket:
		return advise(err, "%v does not accept the ticket, %v: give the service's own key, with its version", addr, code)
	default:
		return advise(err, "%v has aborted the call: %v", addr, code)
	}
}

// adviseRXListen does so for an address that can't be listened at.
func adviseRXListen(err error, addr netip.AddrPort) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return advise(err, "another program listens at port %d%s: give another port with --listen", addr.Port(), errno(err))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "%v is no address of this machine: give one of its own, or --listen :%d to listen at all addresses%s", addr.Addr(), addr.Port(), errno(err))
	case errors.Is(err, syscall.EACCES):
		return advise(err, "port %d is for privileged programs: give one from 1024 on with --listen%s", addr.Port(), errno(err))
	}
	return err
}
