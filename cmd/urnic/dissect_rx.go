package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"urnic/ulp/rx/rxflow"
	"urnic/ulp/rx/rxkad"
)

// dissectRxFlags are the flags of urnic dissect that are about Rx.
type dissectRxFlags struct {
	calls    bool
	ports    []uint
	keyFiles []string
	texts    []string // keys

	keys *rxkad.Keyring // what check has made of them; nil without
}

func (o *dissectRxFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&o.calls, "rx", false, "for Rx, show only calls, no packets")
	f.UintSliceVar(&o.ports, "rx-port", nil, "UDP `PORT` that carries Rx, besides those of AFS")
	f.Lookup("rx-port").DefValue = "" // and not []
	f.StringArrayVar(&o.keyFiles, "rx-keyfile", nil, "keys of services, to decrypt what rxkad protects: `FILE` in the format of AFS's KeyFile or KeyFileExt")
	f.StringArrayVar(&o.texts, "rx-key", nil, "a key of a service, as `VERSION:HEX`: 16 digits for DES, 32 or 64 for AES")
}

// check reads the keys.
func (o *dissectRxFlags) check() error {
	for _, p := range o.ports {
		if p == 0 || p > 65535 {
			return fmt.Errorf("--rx-port %d: give a port from 1 to 65535", p)
		}
	}
	o.keys = new(rxkad.Keyring)
	for _, name := range o.keyFiles {
		b, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("--rx-keyfile: the keys can't be read: %w", err)
		}
		// What is a KeyFileExt fits its lengths to the last byte; a KeyFile does not look so.
		if err = o.keys.LoadKeyFileExt(b); errors.Is(err, rxkad.ErrKeyFile) {
			err = o.keys.LoadKeyFile(b)
		}
		if err != nil {
			return fmt.Errorf("--rx-keyfile %s: %w", name, err)
		}
	}
	for _, text := range o.texts {
		if err := addKey(o.keys, "--rx-key", text); err != nil {
			return err
		}
	}
	if len(o.keyFiles) > 0 && o.keys.Len() == 0 {
		return errors.New("--rx-keyfile: the files have no usable key: rxkad needs DES or AES keys")
	}
	return nil
}

// analyzer returns what follows Rx.
func (o *dissectRxFlags) analyzer(all bool) *rxflow.Analyzer {
	a := &rxflow.Analyzer{All: all, Calls: o.calls}
	for _, p := range o.ports {
		a.Ports = append(a.Ports, uint16(p))
	}
	if o.keys != nil && o.keys.Len() > 0 {
		a.Security = []rxflow.Security{rxflow.Rxkad(o.keys)}
	}
	return a
}
