package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// recordTimeline runs a program with our library, and writes a timeline when it has ended. The error has the status of the
// program, if that is not 0; a timeline that can't be written is an error, too.
func recordTimeline(ctx context.Context, file string, args, env []string, library string) error {
	path, err := find(args[0])
	if err != nil {
		return err
	}
	if err := preloadable(path, library); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "urnic-timeline-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is in it has been read
	cmd := exec.Command(path)
	cmd.Args, cmd.Env = args, set(env, "URNIC_TIMELINE", dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := passed()
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return unfit("%s can't be executed: %w", path, err)
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s) // it may have ended
			case <-done:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	if err != nil && cmd.ProcessState == nil {
		return err
	}
	return outcome(args[0], cmd.ProcessState, writeTimeline(ctx, dir, strings.Join(args, " "), file, io.Discard))
}

// outcome is the error of a program that has ended, with its status, and with what is wrong with its timeline.
func outcome(program string, state *os.ProcessState, timeline error) error {
	if timeline != nil {
		timeline = fmt.Errorf("there is no timeline: %w", timeline)
	}
	status, is := state.Sys().(syscall.WaitStatus)
	switch {
	case is && status.Signaled():
		const signaled = 128 // as a shell has it
		return &statusError{errors.Join(fmt.Errorf("%s was ended by a signal: %v", program, status.Signal()), timeline), signaled + int(status.Signal())}
	case state.ExitCode() != 0:
		return &statusError{errors.Join(fmt.Errorf("%s has ended with status %d", program, state.ExitCode()), timeline), state.ExitCode()}
	}
	return timeline
}

// passed returns the signals that are passed on to the program. From a terminal, the program gets those of
// the keyboard itself, and must not get them twice.
func passed() chan os.Signal {
	c := make(chan os.Signal, 16)
	list := []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}
	if tty, err := os.OpenFile("/dev/tty", os.O_RDONLY, 0); err == nil {
		_ = tty.Close()                                                         // it was only looked for
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT) // they don't end urnic before the program
	} else {
		list = append(list, syscall.SIGINT, syscall.SIGQUIT)
	}
	signal.Notify(c, list...)
	return c
}
