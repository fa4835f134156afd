package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"urnic/internal/capture"
	"urnic/internal/host/listen"
	"urnic/mpa"
	"urnic/rnic"
)

// deviceFlags are the flags of every subcommand that opens a device.
type deviceFlags struct {
	pcap     string
	trace    bool
	logLevel string

	crc      string
	markers  bool
	revision int
	mulpdu   int
	settle   time.Duration
	llp      string
}

// add adds what all of those subcommands have.
func (d *deviceFlags) add(f *pflag.FlagSet) {
	f.StringVar(&d.pcap, "pcap", "", "record the traffic in this `FILE` (pcapng; - is standard output)")
	f.BoolVar(&d.trace, "trace", false, "print each message to standard error")
	f.StringVar(&d.logLevel, "log-level", "error", "what to log to standard error: debug, info, warn or error")
}

// addMPA adds the flags that shape the connection.
func (d *deviceFlags) addMPA(f *pflag.FlagSet) {
	d.addCRC(f)
	d.addSettle(f)
	f.BoolVar(&d.markers, "markers", false, "ask the peer for MPA markers")
	f.IntVar(&d.revision, "mpa-revision", 0, "pin the MPA `REVISION`, 1 or 2 (0: negotiate)")
	f.IntVar(&d.mulpdu, "mulpdu", 0, fmt.Sprintf("largest ULPDU in `BYTES`, %d to %d, for peers that accept more than a TCP segment (0: one segment)", mpa.MinMULPDU, mpa.MaxMULPDU))
}

// addCRC and addSettle add those of them that matter to all who talk to Linux siw.
func (d *deviceFlags) addCRC(f *pflag.FlagSet) {
	f.StringVar(&d.crc, "crc", "prefer", "CRC32c `POLICY`: prefer, require or off")
}

func (d *deviceFlags) addSettle(f *pflag.FlagSet) {
	f.DurationVar(&d.settle, "settle", 10*time.Millisecond, "a client's wait before its first FPDU: Linux siw may lose one that comes at once")
}

// mpaConfig returns the template for connections. It looks at all flags here: a
// server would find what is wrong with them only when a client has come.
func (d *deviceFlags) mpaConfig() (cfg mpa.Config, err error) {
	switch {
	case d.revision != 0 && d.revision != int(mpa.Revision1) && d.revision != int(mpa.Revision2):
		return cfg, fmt.Errorf("--mpa-revision %d: must be 1, 2, or 0 to negotiate it", d.revision)
	case d.mulpdu != 0 && (d.mulpdu < mpa.MinMULPDU || d.mulpdu > mpa.MaxMULPDU):
		return cfg, fmt.Errorf("--mulpdu %d: must be %d to %d, or 0 for one TCP segment", d.mulpdu, mpa.MinMULPDU, mpa.MaxMULPDU)
	case d.settle < 0:
		return cfg, fmt.Errorf("--settle %v: must be 0 or more", d.settle)
	}
	cfg = mpa.Config{Markers: d.markers, Revision: uint8(d.revision), MULPDU: d.mulpdu, Settle: d.settle}
	if d.crc == "" { // of a command that has no such flag
		return cfg, nil
	}
	if cfg.CRC, err = mpa.ParseCRCPolicy(d.crc); err != nil {
		return cfg, fmt.Errorf("--crc %s: must be one of prefer, require, off", d.crc)
	}
	return cfg, nil
}

// A device is an rnic.Device with what the flags attach to it.
type device struct {
	*rnic.Device
	close []func() error
}

// config returns the configuration that the flags ask for, but for the
// recording.
func (d *deviceFlags) config(stderr io.Writer) (cfg rnic.Config, err error) {
	if cfg.MPA, err = d.mpaConfig(); err != nil {
		return cfg, err
	}
	if err := d.checkLLP(); err != nil {
		return cfg, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(d.logLevel)); err != nil {
		return cfg, fmt.Errorf("--log-level %s: must be one of debug, info, warn, error", d.logLevel)
	}
	cfg.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	if d.trace {
		var mu sync.Mutex
		cfg.Trace = func(t rnic.Trace) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(stderr, "%s QP %d %v\n", t.Device, t.QPN, t.Trace)
		}
	}
	return cfg, nil
}

// open opens a device as the flags want it.
func (d *deviceFlags) open(network rnic.Network, stdout, stderr io.Writer) (*device, error) {
	cfg, err := d.config(stderr)
	if err != nil {
		return nil, err
	}
	cfg.Network = network
	dev := &device{}
	if cfg.Record, err = d.record(dev, stdout); err != nil {
		return nil, err
	}
	layer, end, err := d.lower(cfg.Record)
	if err != nil {
		return nil, errors.Join(err, dev.closeFiles())
	}
	if layer != nil {
		cfg.LowerLayer, cfg.Record = layer, nil
	}
	if end != nil {
		dev.close = append([]func() error{end}, dev.close...)
	}
	if dev.Device, err = rnic.Open(cfg); err != nil {
		return nil, errors.Join(err, dev.closeFiles())
	}
	return dev, nil
}

// record returns where the recording goes, or nil if none is wanted.
func (d *deviceFlags) record(dev *device, stdout io.Writer) (io.Writer, error) {
	switch d.pcap {
	case "":
		return nil, nil
	case "-":
		return stdout, nil
	}
	f, err := createRecording(d.pcap)
	if err != nil {
		return nil, err
	}
	dev.close = append(dev.close, f.Close)
	return f, nil
}

func createRecording(name string) (*outputFile, error) {
	f, err := capture.Create(name)
	if err != nil {
		return nil, fmt.Errorf("--pcap: the recording can't be written, give a file that can be: %w", err)
	}
	return &outputFile{f}, nil
}

func (d *device) closeFiles() error {
	var errs []error
	for _, c := range d.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// Close closes the device and the recording.
func (d *device) Close() error { return errors.Join(d.Device.Close(), d.closeFiles()) }

// A boundNetwork dials from one local address.
type boundNetwork struct{ local net.IP }

func (n boundNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: n.local}}
	return d.DialContext(ctx, "tcp", address)
}

func (boundNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	return listen.TCP(ctx, address)
}
