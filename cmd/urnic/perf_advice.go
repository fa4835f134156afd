package main

import (
	"context"
	"errors"
	"fmt"
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
		return fmt.Errorf("there is no address for the name %q: give an IP address, or a name that can be looked up (%s)", unresolved.Name, unresolved.Err)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s is no address to connect to: give HOST:PORT, such as 192.0.2.7:%d (%s)", address, perfPort, wrong.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody listens at %s (%w): start `urnic perf server --listen :%s` there first", address, syscall.ECONNREFUSED, port)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fmt.Errorf("no way leads to %s: check the address and this machine's routes: %w", address, err)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Errorf("no answer from %s within %v: check address and port, or wait longer with --connect-timeout: %w", address, timeout, err)
	case errors.As(err, &strange) && !errors.As(err, &broken):
		return fmt.Errorf("what listens at %s is no urnic perf: give the address of `urnic perf server`: %w", address, err)
	}
	return err
}

// advisePerfListen does so for an address that can't be listened at.
func advisePerfListen(err error, address string) error {
	var unresolved *net.DNSError
	host, port, _ := net.SplitHostPort(address)
	switch {
	case errors.As(err, &unresolved):
		return fmt.Errorf("--listen %s: there is no address for the name %q: give an IP address (%s)", address, unresolved.Name, unresolved.Err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("another program listens at port %s (%w): give another one with --listen", port, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine: give one of its own, or --listen :%s to listen at all (%w)", host, port, syscall.EADDRNOTAVAIL)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("port %s is for privileged programs: give one from 1024 on with --listen (%w)", port, syscall.EACCES)
	}
	return err
}
