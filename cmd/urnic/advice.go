package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
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
		return fmt.Errorf("nobody listens at %s (%w): start `urnic rping -s -p %s` there first, or give the port with -p", address, syscall.ECONNREFUSED, port)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fmt.Errorf("no way leads to %s: check the address and this machine's routes: %w", address, err)
	case source != "" && errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("-I %s: that is no address of this machine: give one of its own (%w)", source, syscall.EADDRNOTAVAIL)
	case source != "" && errors.As(err, &mixed):
		return fmt.Errorf("-I %s: %s can't be reached from it: give two IPv4 addresses or two of IPv6", source, address)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Errorf("no answer from %s within %v: check address and port, or wait longer with --connect-timeout: %w", address, timeout, err)
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
		return fmt.Errorf("another program listens at port %s (%w): give another port with -p", port, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine: give one of its own with -a, or leave -a out to listen at all (%w)", host, syscall.EADDRNOTAVAIL)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("port %s is for privileged programs: give one from 1024 on with -p (%w)", port, syscall.EACCES)
	}
	return err
}

func adviseName(e *net.DNSError) error {
	return fmt.Errorf("there is no address for the name %q: give an IP address with -a, or a name that can be looked up (%s)", e.Name, e.Err)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
