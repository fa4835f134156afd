package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A command is a program to start, as a shell would read it.
type command struct {
	env  []string // beside our own
	argv []string
}

// String is the command as a person would type it.
func (c command) String() string {
	words := slices.Clone(c.env)
	for _, a := range c.argv {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&;|<>()*?#~`{}[]") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// start begins a command. What it prints goes to the buffers that are returned.
func (c command) start(ctx context.Context) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer, err error) {
	cmd = exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = time.Second
	return cmd, stdout, stderr, cmd.Start()
}

// run runs a command to its end and returns what it printed on its output. The
// error has what it printed elsewhere.
func (c command) run(ctx context.Context) ([]byte, error) {
	cmd, stdout, stderr, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return stdout.Bytes(), failure(ctx, c.argv[0], err, stderr, stdout)
	}
	return stdout.Bytes(), nil
}

// failure says how a program has failed.
func failure(ctx context.Context, name string, err error, printed ...*bytes.Buffer) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	for _, p := range printed {
		if p.Len() > 0 {
			return fmt.Errorf("%s: %w: %s", name, err, tail(p.Bytes()))
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// tail returns the end of what a program has printed, in one line.
func tail(out []byte) string {
	const most = 200
	s := strings.Join(strings.Fields(string(out)), " ")
	if s == "" {
		return "it printed nothing"
	}
	if len(s) > most {
		s = "… " + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}

// grace is how long a server has to listen, and to end when its client has.
const grace = time.Minute

// runPair runs a server and, once it listens at the port, its client, and
// returns what the client printed on its output. The server ends by itself after
// one client, unless it stays; one that doesn't is killed.
func runPair(ctx context.Context, server, client command, port int, stays bool) (out []byte, err error) {
	sctx, kill := context.WithCancel(ctx)
	defer kill()
	cmd, stdout, stderr, err := server.start(sctx)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- cmd.Wait()
	}()
	stop := func() {
		kill()
		for range ended { // how it ended is not asked any more
		}
	}
	if err := waitListening(ctx, port, ended); err != nil {
		stop()
		return nil, failure(ctx, "server "+server.argv[0], err, stderr, stdout)
	}
	out, err = client.run(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	if stays {
		stop()
		return out, nil
	}
	select {
	case err := <-ended:
		if err != nil {
			return nil, failure(ctx, "server "+server.argv[0], err, stderr, stdout)
		}
	case <-time.After(grace):
		stop()
	}
	return out, nil
}
