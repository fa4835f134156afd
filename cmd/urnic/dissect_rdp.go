package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"urnic/ulp/rdp/rdpflow"
)

// dissectRDPFlags are the flags of urnic dissect that are about RDP.
type dissectRDPFlags struct {
	brief, complete bool
	ports           []uint
}

func (o *dissectRDPFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&o.brief, "rdp", false, "for RDP, show only how connections open and end, no segments")
	f.BoolVar(&o.complete, "rdp-complete", false, "no RDP packet is missing: check windows and acknowledgements at once")
	f.UintSliceVar(&o.ports, "rdp-port", nil, "UDP `PORT` that carries RDP, besides 10908")
	f.Lookup("rdp-port").DefValue = "" // and not []
}

// check checks the flags.
func (o *dissectRDPFlags) check() error {
	for _, p := range o.ports {
		if p == 0 || p > 65535 {
			return fmt.Errorf("--rdp-port %d: give a port from 1 to 65535", p)
		}
	}
	return nil
}

// analyzer returns what follows RDP.
func (o *dissectRDPFlags) analyzer(all bool) *rdpflow.Analyzer {
	a := &rdpflow.Analyzer{All: all, Brief: o.brief, Complete: o.complete}
	for _, p := range o.ports {
		a.Ports = append(a.Ports, uint16(p))
	}
	return a
}
