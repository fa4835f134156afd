package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"urnic/internal/program/perf"
	"urnic/rnic"
)

// runPerfLocal measures between two devices in this process.
func runPerfLocal(ctx context.Context, o *perfOptions, stdout, stderr io.Writer) error {
	return withPerfServer(ctx, o, func(address string) error {
		return measurePerf(ctx, o, address, stdout, stderr)
	})
}

// withPerfServer calls do with the address of a server in this process.
func withPerfServer(ctx context.Context, o *perfOptions, do func(address string) error) (err error) {
	if err := o.checkLLP(); err != nil {
		return err
	}
	layer, _, err := o.lower(nil)
	if err != nil {
		return err
	}
	server, err := rnic.Open(rnic.Config{Name: "server", LowerLayer: layer})
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
	return do(l.Addr().String())
}

// runPerfClient measures against a server.
func runPerfClient(ctx context.Context, o *perfOptions, address string, stdout, stderr io.Writer) error {
	return advisePerfDial(measurePerf(ctx, o, address, stdout, stderr), address, o.Timeout)
}

// measurePerf measures against a server, and prints what comes of it.
func measurePerf(ctx context.Context, o *perfOptions, address string, stdout, stderr io.Writer) (err error) {
	if o.llp == llpRDP && (o.Markers || o.MULPDU != 0 || o.NoCRC) {
		return errors.New("--llp rdp: --markers, --mulpdu and --crc off are of MPA over TCP; leave them out")
	}
	plot, err := createPicture(o.svg, "--svg: the plot")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plot.close()) }()
	page, err := createPicture(o.html, "--html: the page")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.close()) }()
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
	view := &perfView{out: out, terminal: stderr, json: o.json, round: o.Duration}
	if o.trace { // whose lines would be in the way
		view.terminal = io.Discard
	}
	o.Hooks = view.hooks()
	o.Apart = o.llp == llpRDP
	stop, err := startProfile(o.cpuProfile)
	if err != nil {
		return err
	}
	report, err := perf.Run(ctx, dev.Device, segments, address, o.Options)
	err = errors.Join(err, stop())
	view.end()
	if report != nil && o.json {
		report.Error = reason(ctx, err)
		err = errors.Join(err, writeJSON(out, "urnic-perf/1", report))
	}
	if err == nil && plot != nil {
		err = report.WriteSVG(plot)
	}
	if page != nil && report != nil {
		report.Error = reason(ctx, err)
		err = errors.Join(err, report.WriteHTML(page, toolName()))
	}
	return err
}

// A perfView shows how far a run is: the table row by row, and in between how
// much of the next row is done, in seconds of the rounds or, if those are shorter
// or of unknown length, in rounds.
type perfView struct {
	out, terminal io.Writer
	json          bool
	round         time.Duration // how long one takes, or 0
	rounds        int           // of the next row
	bar           *progress
	stop          func() // ends what counts the seconds
}

// begin begins to show rounds.
func (v *perfView) begin(rounds int) {
	v.end()
	v.rounds = rounds
	seconds := int64(v.round / time.Second)
	if seconds == 0 {
		v.bar = newProgress(v.terminal, int64(rounds), progressbar.OptionSetDescription("perf, rounds"))
		return
	}
	v.bar = newProgress(v.terminal, int64(rounds)*seconds, progressbar.OptionSetDescription("perf, seconds"))
	if v.bar == nil {
		return
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for left := int64(rounds) * seconds; left > 1; left-- { // the end is told by the row
			select {
			case <-tick.C:
				v.bar.add(1)
			case <-done:
				return
			}
		}
	}()
	v.stop = func() {
		close(done)
		<-ended
	}
}

// end wipes what is shown.
func (v *perfView) end() {
	if v.stop != nil {
		v.stop()
		v.stop = nil
	}
	v.bar.end()
}

func (v *perfView) hooks() perf.Hooks {
	h := perf.Hooks{
		Case: v.begin,
		Round: func() {
			if v.stop == nil {
				v.bar.add(1)
			}
		},
	}
	if v.json {
		return h
	}
	table := &perf.Table{W: v.out}
	h.Begin = func(r *perf.Report) {
		v.end()
		table.Begin(r)
		v.begin(v.rounds)
	}
	h.Result = func(r perf.Result) {
		v.end()
		table.Row(r)
	}
	return h
}

// A picture is a file that a flag names, or nil.
type picture struct{ *outputFile }

// createPicture makes the file before the work, so that it is not in vain.
func createPicture(name, what string) (*picture, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("%s can't be written, give a file that can be: %w", what, err)
	}
	return &picture{&outputFile{f}}, nil
}

func (p *picture) close() error {
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
	return errors.Join(unlessEnded(ctx, s.Serve(ctx, l)), out.failed)
}
