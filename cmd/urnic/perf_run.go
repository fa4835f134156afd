package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

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
	o.BothSides = true
	return measurePerf(ctx, o, l.Addr().String(), stdout, stderr)
}

// runPerfClient measures against a server.
func runPerfClient(ctx context.Context, o *perfOptions, address string, stdout, stderr io.Writer) error {
	return advisePerfDial(measurePerf(ctx, o, address, stdout, stderr), address, o.Timeout)
}

// measurePerf measures against a server, and prints what comes of it.
func measurePerf(ctx context.Context, o *perfOptions, address string, stdout, stderr io.Writer) (err error) {
	plot, err := o.createPlot()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plot.close()) }()
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
	view := &perfView{out: out, terminal: stderr, json: o.json}
	if o.trace { // whose lines would be in the way
		view.terminal = io.Discard
	}
	o.Hooks = view.hooks()
	report, err := perf.Run(ctx, dev.Device, segments, address, o.Options)
	view.bar.end()
	if report != nil && o.json {
		report.Error = text(err)
		e := json.NewEncoder(out)
		err = errors.Join(err, e.Encode(report))
	}
	if err == nil {
		err = plot.draw(report)
	}
	return err
}

// A perfView shows how far a run is: the table row by row, and in between how
// many rounds of the next row are over.
type perfView struct {
	out, terminal io.Writer
	json          bool
	bar           *progress
}

func (v *perfView) hooks() perf.Hooks {
	h := perf.Hooks{
		Case: func(rounds int) {
			v.bar.end()
			v.bar = newProgress(v.terminal, int64(rounds), progressbar.OptionSetDescription("perf"), progressbar.OptionSetItsString("rounds"))
		},
		Round: func() { v.bar.add(1) },
	}
	if v.json {
		return h
	}
	table := &perf.Table{W: v.out}
	h.Begin = table.Begin
	h.Result = func(r perf.Result) {
		v.bar.end()
		table.Row(r)
	}
	return h
}

// A plot is the file that --svg names, or nil.
type plot struct{ *os.File }

// createPlot makes the file before the work, so that it is not in vain.
func (o *perfOptions) createPlot() (*plot, error) {
	if o.svg == "" {
		return nil, nil
	}
	f, err := os.Create(o.svg)
	if err != nil {
		return nil, fmt.Errorf("--svg: the plot can't be written, give a file that can be: %w", err)
	}
	return &plot{f}, nil
}

func (p *plot) draw(r *perf.Report) error {
	if p == nil {
		return nil
	}
	return r.WriteSVG(p)
}

func (p *plot) close() error {
	if p == nil {
		return nil
	}
	return p.Close()
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
		return advisePerfListen(err, o.listen)
	}
	out := &lines{w: stdout}
	if o.pcap == "-" {
		out.w = stderr
	}
	out.print(fmt.Sprintf("listening at %v", l.Addr()))
	s := &perf.Server{Device: dev.Device, MaxMemory: o.MaxMemory, Log: out.print}
	return errors.Join(s.Serve(ctx, l), out.failed)
}
