package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"urnic/internal/capture"
	"urnic/rnic"
	"urnic/ulp/rdp/rdpllp"
)

// The lower layers that DDP runs on.
const (
	llpTCP = "tcp"
	llpRDP = "rdp"
)

// addLLP adds the flag of subcommands whose connections may run on another lower layer.
func (d *deviceFlags) addLLP(f *pflag.FlagSet) {
	f.StringVar(&d.llp, "llp", llpTCP, "transport of DDP, on both sides: tcp (MPA over TCP), or rdp (RDP over UDP; segments are placed as they arrive)")
}

// checkLLP looks at the flag.
func (d *deviceFlags) checkLLP() error {
	switch d.llp {
	case "", llpTCP:
		return nil
	case llpRDP:
		if d.markers || d.revision != 0 || d.mulpdu != 0 {
			return errors.New("--llp rdp: --markers, --mpa-revision and --mulpdu are of MPA over TCP; leave them out")
		}
		return nil
	}
	return fmt.Errorf("--llp %s: must be tcp or rdp", d.llp)
}

// lower returns the lower layer that the flag names, and has it record instead of the device; nil stands for MPA over TCP.
func (d *deviceFlags) lower(record io.Writer) (layer rnic.LowerLayer, end func() error, err error) {
	if d.llp != llpRDP {
		return nil, nil, nil
	}
	var cfg rdpllp.Config
	if record != nil {
		w, err := capture.NewWriter(record)
		if err != nil {
			return nil, nil, err
		}
		cfg.Recorder, end = w, w.Close
	}
	return rdpllp.New(cfg), end, nil
}
