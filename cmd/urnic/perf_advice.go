package main

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"urnic/mpa"
	"urnic/rdmap"
)

// advisePerfDial says what to do about a server that could not be reached.
func advisePerfDial(err error, address string, timeout time.Duration) error {
	var unresolved *net.DNSError
	var wrong *net.AddrError
	var strange *mpa.Error
	var broken *rdmap.Error
	_, port, _ := net.SplitHostPort(address)
	switch {
	case errors.As(err, &unresolved):
		return advise(err, "there is no address for the name %q: give an IP address, or a name that can be looked up (%s)", unresolved.Name, unresolved.Err)
	case errors.As(err, &wrong):
		return advise(err, "%s is no address to connect to: give HOST:PORT, such as 192.0.2.7:%d (%s)", address, perfPort, wrong.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(err, "nobody listens at %s%s: start `urnic perf server --listen :%s` there first", address, errno(err), port)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return advise(err, "no route to %s%s: check the address and this machine's routes", address, errno(err))
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return advise(err, "no answer from %s within %v: check address and port, or wait longer with --connect-timeout", address, timeout)
	case errors.As(err, &strange) && !errors.As(err, &broken):
		return advise(err, "what listens at %s is no urnic perf: give the address of `urnic perf server`", address)
	}
	return err
}

// advisePerfListen does so for an address that can't be listened at.
func advisePerfListen(err error, address string) error {
	var unresolved *net.DNSError
	host, port, _ := net.SplitHostPort(address)
	switch {
	case errors.As(err, &unresolved):
		return advise(err, "--listen %s: there is no address for the name %q: give an IP address (%s)", address, unresolved.Name, unresolved.Err)
	case errors.Is(err, syscall.EADDRINUSE):
		return advise(err, "another program listens at port %s%s: give another port with --listen", port, errno(err))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "%s is no address of this machine: give one of its own, or --listen :%s to listen at all addresses%s", host, port, errno(err))
	case errors.Is(err, syscall.EACCES):
		return advise(err, "port %s is for privileged programs: give one from 1024 on with --listen%s", port, errno(err))
	}
	return err
}
