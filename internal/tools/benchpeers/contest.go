package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// A contest is one command of one program, which each round runs once.
type contest struct {
	name string // by which rows and --only name it
	by   *program

	// argv is the command of ours, or the client's of a peer, without the binary.
	argv func(at setting) []string
	// server is the server's command; nil if both sides are in one process.
	server func(at setting) []string
	stays  bool // the server does not end by itself
	env    []string

	// dropIn is the program that `urnic run` starts on urnic, for those that are
	// not ours and not measured beside ours either.
	dropIn string

	// measure runs the contest otherwise than by one run of the commands.
	measure func(ctx context.Context, at setting) ([]reading, error)

	// first is how many iterations a trial has, from which follows how many a run
	// needs; 0 for programs that are told a time.
	first int
	parse func(out []byte, at setting) ([]reading, error)
}

// A setting is what differs from run to run.
type setting struct {
	duration   time.Duration
	try        time.Duration // of a baseline's sizes of calls; 0 for urnic's default
	iterations int
	port       int
}

// commands returns what the contest starts: a server, if it has one, and the
// client.
func (c *contest) commands(at setting) (server *command, client command) {
	client = command{c.env, append(c.binary(), c.argv(at)...)}
	if c.server != nil {
		server = &command{c.env, append(c.binary(), c.server(at)...)}
	}
	return server, client
}

// binary is what a command begins with.
func (c *contest) binary() []string {
	if c.dropIn != "" {
		return []string{urnic.binary, "run", "--", c.dropIn}
	}
	return []string{c.by.binary}
}

// run runs the contest once.
func (c *contest) run(ctx context.Context, at setting) ([]reading, error) {
	limit := time.Minute + 10*at.duration
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has not ended after %v", limit))
	defer cancel()
	if c.measure != nil {
		return c.measure(ctx, at)
	}
	if c.server == nil {
		_, client := c.commands(at)
		out, err := client.run(ctx)
		if err != nil {
			return nil, err
		}
		return c.parse(out, at)
	}
	port, release, err := reservePort()
	if err != nil {
		return nil, err
	}
	defer release()
	at.port = port
	server, client := c.commands(at)
	out, err := runPair(ctx, *server, client, at.port, c.stays)
	if err != nil {
		return nil, err
	}
	return c.parse(out, at)
}

// calibrate returns how many iterations last for a duration, by the fastest of
// several trials: the others may have had a bad moment. Programs that are told a
// time need none.
func (c *contest) calibrate(ctx context.Context, duration time.Duration) (int, error) {
	at := setting{duration: duration, iterations: c.first}
	for range 3 {
		if c.first == 0 {
			break
		}
		got, err := c.run(ctx, at)
		if err != nil {
			return c.first, err
		}
		at.iterations = max(at.iterations, iterationsFor(at.iterations, got[0].Seconds, duration))
	}
	return at.iterations, nil
}

// iterationsFor returns how many iterations take a duration, if n took so many
// seconds: a number of two digits and zeros.
func iterationsFor(n int, seconds float64, duration time.Duration) int {
	if seconds <= 0 {
		return n
	}
	want := float64(n) * duration.Seconds() / seconds
	unit := math.Pow(10, max(0, math.Floor(math.Log10(want))-1))
	return max(10, int(math.Round(want/unit)*unit))
}

// warmUp is how many iterations go before those that count: enough for TCP to
// find its pace.
func warmUp(iterations int) string { return strconv.Itoa(max(1, iterations/5)) }
