package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxperf"
	"urnic/ulp/rx/rxperf/rawudp"
)

// run serves until it is to end.
func (o *rxPerfServerOptions) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	raw, err := rawudp.Listen(ctx, o.addr.Addr())
	if err != nil {
		return adviseRXListen(err, o.addr)
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	services := []rx.Service{rxperf.Service(), raw.Service()}
	if err := o.secureServices(services); err != nil {
		return err
	}
	e, err := o.openEndpoint(ctx, o.addr, services, stdout, stderr)
	if err != nil {
		return adviseRXListen(err, o.addr)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	out.print(fmt.Sprintf("listening at %v over %s", e.Addr(), o.transport))
	<-ctx.Done()
	return out.failed
}

// An rxPerfRound is what has come of a round.
type rxPerfRound struct {
	rx  *rxperf.Result
	raw *rawudp.Result // nil without a baseline
}

// measure measures, and prints what comes of it.
func (o *rxPerfClientOptions) measure(ctx context.Context, stdout, stderr io.Writer) (err error) {
	security, err := o.client(time.Now())
	if err != nil {
		return err
	}
	e, err := o.openEndpoint(ctx, netip.AddrPort{}, nil, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	stop, err := startProfile(o.cpuProfile)
	if err != nil {
		return err
	}
	if o.pcap == "-" {
		stdout = stderr
	}
	rounds, failure := o.rounded(ctx, e, rx.DialConfig{Security: security, DeadTime: o.timeout})
	failure = errors.Join(failure, stop())
	report := o.summary(rounds)
	if o.json {
		report.Error = reason(ctx, failure)
		return errors.Join(failure, writeJSON(stdout, "urnic-rx-perf/1", report))
	}
	return errors.Join(failure, report.write(stdout))
}

// rounded makes the rounds. What has come of those that were not cut short is returned with an
// error, too.
func (o *rxPerfClientOptions) rounded(ctx context.Context, e rx.Endpoint, dial rx.DialConfig) (rounds []rxPerfRound, err error) {
	for range o.rounds {
		var round rxPerfRound
		round.rx, err = rxperf.Run(ctx, e, o.addr, dial, o.run)
		if err != nil {
			return rounds, adviseRX(ctx, err, o.addr, rxperf.ServiceID)
		}
		if o.baseline {
			raw := o.raw()
			if raw.Duration == 0 {
				raw.Duration = time.Duration(round.rx.Seconds * float64(time.Second))
			}
			round.raw, err = rawudp.NewClient(e, o.addr, dial).Run(ctx, raw)
			var a rx.Aborter
			if errors.As(err, &a) && a.AbortCode() == -2 && ctx.Err() == nil {
				return append(rounds, round), advise(err, "%v is no server of urnic, and has no baseline: leave --baseline out", o.addr)
			}
			if err != nil {
				return append(rounds, round), adviseRX(ctx, err, o.addr, rawudp.ServiceID)
			}
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

// raw is what the baseline of a round is.
func (o *rxPerfClientOptions) raw() rawudp.Options {
	raw := rawudp.Options{Command: o.run.Command, Size: o.datagram, Parallel: o.parallel * o.conns, Duration: o.duration}
	switch {
	case o.run.Command == rxperf.RPC:
		raw.Parallel = min(raw.Parallel, 64) // which have sessions
		raw.Size = int(min(max(o.run.Send, o.run.Receive, rawudp.MinSize), rawudp.MaxSize))
	case raw.Size != 0:
	case o.addr.Addr().IsLoopback():
		raw.Size = rawudp.MaxSize
	default:
		raw.Size = 1444
	}
	return raw
}

// sample is what rounds are compared by: calls a second of rpc, bytes a second of others.
func (o *rxPerfClientOptions) sample(r *rxperf.Result) float64 {
	if o.run.Command == rxperf.RPC {
		return r.CallsPerSecond()
	}
	return r.BytesPerSecond()
}

func (o *rxPerfClientOptions) rawSample(r *rawudp.Result) float64 {
	if o.run.Command == rxperf.RPC {
		return r.PerSecond()
	}
	return r.BytesPerSecond()
}

// middle returns the median element by a figure, and the figures of all in their order.
func middle[T any](list []T, figure func(T) float64) (m T, samples []float64) {
	for _, v := range list {
		samples = append(samples, figure(v))
	}
	sorted := slices.SortedStableFunc(slices.Values(list), func(a, b T) int { return cmp.Compare(figure(a), figure(b)) })
	if len(sorted) > 0 {
		m = sorted[(len(sorted)-1)/2]
	}
	return m, samples
}
