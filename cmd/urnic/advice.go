package main

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"urnic/mpa"
)

// adviseDial says what to do about a connection that could not be made. What it
// knows no advice for it returns as it is.
func adviseDial(err error, address, source string, timeout time.Duration) error {
	var unresolved *net.DNSError
	var mixed *net.AddrError
	_, port, _ := net.SplitHostPort(address)
	switch {
	case errors.As(err, &unresolved):
		return adviseName(unresolved)
	case errors.Is(err, syscall.ECONNREFUSED):
		return advise(err, "nobody listens at %s%s: start `urnic rping -s -p %s` there first, or give the port with -p", address, errno(err), port)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return advise(err, "no route to %s%s: check the address and this machine's routes", address, errno(err))
	case source != "" && errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "-I %s: that is no address of this machine: give one of its own%s", source, errno(err))
	case source != "" && errors.As(err, &mixed):
		return advise(err, "-I %s: %s can't be reached from it: give two IPv4 addresses or two of IPv6", source, address)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return advise(err, "no answer from %s within %v: check address and port, or wait longer with --connect-timeout", address, timeout)
	case errors.As(err, new(*mpa.RejectedError)):
		return advise(err, "what listens at %s rejects the connection, as a server of another program may: give the address of `urnic rping -s`", address)
	}
	return err
}

// adviseListen does so for an address that can't be listened at.
func adviseListen(err error, address string) error {
	var unresolved *net.DNSError
	host, port, _ := net.SplitHostPort(address)
	switch {
	case errors.As(err, &unresolved):
		return adviseName(unresolved)
	case errors.Is(err, syscall.EADDRINUSE):
		return advise(err, "another program listens at port %s%s: give another port with -p", port, errno(err))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return advise(err, "%s is no address of this machine: give one of its own with -a, or leave -a out to listen at all addresses%s", host, errno(err))
	case errors.Is(err, syscall.EACCES):
		return advise(err, "port %s is for privileged programs: give one from 1024 on with -p%s", port, errno(err))
	}
	return err
}

func adviseName(e *net.DNSError) error {
	return advise(e, "there is no address for the name %q: give an IP address with -a, or a name that can be looked up (%s)", e.Name, e.Err)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
