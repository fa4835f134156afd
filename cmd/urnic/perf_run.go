package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"

	"urnic/internal/perf"
	"urnic/rnic"
)

// runPerfLocal measures between two devices in this process.
func runPerfLocal(ctx context.Context, o *perfOptions, stdout, stderr io.Writer) (err error) {
	server, err := rnic.Open(rnic.Config{Name: "server"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	l, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	s := &perf.Server{Device: server, MaxMemory: o.MaxMemory}
	go func() { done <- s.Serve(serving, l) }()
	defer func() {
		stop()
		err = errors.Join(err, <-done)
	}()
	return measurePerf(ctx, o, l.Addr().String(), stdout, stderr)
}

// runPerfClient measures against a server.
func runPerfClient(ctx context.Context, o *perfOptions, address string, stdout, stderr io.Writer) error {
	return measurePerf(ctx, o, address, stdout, stderr)
}

// measurePerf measures against a server, and prints what comes of it.
func measurePerf(ctx context.Context, o *perfOptions, address string, stdout, stderr io.Writer) (err error) {
	segments := &perf.Segments{}
	dev, err := o.open(segments, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	out := stdout
	if o.pcap == "-" {
		out = stderr
	}
	var bar *progress
	if !o.trace {
		bar = newProgress(stderr, 0, progressbar.OptionSetDescription("perf"), progressbar.OptionSetItsString("rounds"))
	}
	defer bar.end()
	o.Progress = func(int, int) { bar.add(1) }
	if !o.json {
		table := &perf.Table{W: out}
		o.Begin, o.Result = table.Begin, table.Row
	}
	report, err := perf.Run(ctx, dev.Device, segments, address, o.Options)
	bar.end()
	if report != nil && o.json {
		report.Error = text(err)
		e := json.NewEncoder(out)
		err = errors.Join(err, e.Encode(report))
	}
	return err
}

// runPerfServer serves clients until it is interrupted.
func runPerfServer(ctx context.Context, o *perfOptions, stdout, stderr io.Writer) (err error) {
	dev, err := o.open(nil, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	l, err := dev.Listen(ctx, o.listen)
	if err != nil {
		return err
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	out.print(fmt.Sprintf("listening at %v", l.Addr()))
	s := &perf.Server{Device: dev.Device, MaxMemory: o.MaxMemory, Log: out.print}
	return errors.Join(s.Serve(ctx, l), out.failed)
}
