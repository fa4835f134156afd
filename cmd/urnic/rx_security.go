package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"urnic/internal/host/plural"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
	"urnic/ulp/rx/secure"
)

// rxKeyFlags say which keys a service has.
type rxKeyFlags struct {
	level, keyFile, keyExt, key string

	keys     *rxkad.Keyring // nil: none were given
	hasLevel bool
	parsed   rxkad.Level
}

func (o *rxKeyFlags) add(f *pflag.FlagSet, level string) {
	f.StringVar(&o.level, "level", "", level)
	f.StringVar(&o.keyFile, "keyfile", "", "keys of the service: `FILE` in the format of AFS's KeyFile")
	f.StringVar(&o.keyExt, "keyfileext", "", "keys of the service: `FILE` in the format of AFS's KeyFileExt")
	f.StringVar(&o.key, "key", "", "a key of the service, as `VERSION:HEX`: 16 digits for DES, 32 or 64 for AES. Other users can see it in the list of processes")
}

// check reads the keys.
func (o *rxKeyFlags) check() (err error) {
	if o.level != "" {
		o.hasLevel = true
		if o.parsed, err = rxkad.ParseLevel(o.level); err != nil {
			return fmt.Errorf("--level %s: must be one of clear, auth, crypt; or leave it out for no security", o.level)
		}
	}
	keys := new(rxkad.Keyring)
	for _, file := range []struct {
		flag, name string
		load       func([]byte) error
	}{{"--keyfile", o.keyFile, keys.LoadKeyFile}, {"--keyfileext", o.keyExt, keys.LoadKeyFileExt}} {
		if file.name == "" {
			continue
		}
		b, err := os.ReadFile(file.name)
		if err != nil {
			return fmt.Errorf("%s: the keys can't be read: %w", file.flag, err)
		}
		if err := file.load(b); err != nil {
			return fmt.Errorf("%s %s: %w", file.flag, file.name, err)
		}
	}
	if o.key != "" {
		if err := addKey(keys, "--key", o.key); err != nil {
			return err
		}
	}
	if o.keyFile != "" || o.keyExt != "" || o.key != "" {
		if keys.Len() == 0 {
			return errors.New("the files have no usable key: rxkad needs DES or AES keys")
		}
		o.keys = keys
	}
	if o.hasLevel && o.keys == nil {
		return fmt.Errorf("--level %s needs a key of the service: give --keyfile, --keyfileext or --key", o.level)
	}
	return nil
}

// addKey adds the key of a flag.
func addKey(keys *rxkad.Keyring, flag, text string) error {
	version, digits, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(version, 10, 32)
	b, herr := hex.DecodeString(digits)
	if err != nil || herr != nil {
		return fmt.Errorf("%s: give VERSION:HEX, such as 2:0123456789abcdef", flag) // without what was given, which is secret
	}
	switch len(b) {
	case len(rxkad.Key{}):
		err = keys.AddDES(uint32(n), rxkad.Key(b))
	case 16:
		err = keys.Add(uint32(n), krb5.AES128, b)
	case 32:
		err = keys.Add(uint32(n), krb5.AES256, b)
	default:
		return fmt.Errorf("%s: %s: a key has 8 for DES, 16 or 32 for AES", flag, plural.Count(len(b), "byte"))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// rxClientFlags say who a client is.
type rxClientFlags struct {
	rxKeyFlags
	user string
}

func (o *rxClientFlags) add(f *pflag.FlagSet) {
	o.rxKeyFlags.add(f, "`LEVEL` of rxkad: clear, auth or crypt (default crypt with a key, no security without)")
	f.StringVar(&o.user, "user", rxkad.Superuser, "`NAME` of the client in the ticket that is made with the key, as NAME[.INSTANCE][@REALM]")
}

// client returns the security of a client; nil for none.
func (o *rxClientFlags) client(now time.Time) (secure.Client, error) {
	if o.keys == nil {
		return nil, nil
	}
	level := rxkad.Crypt
	if o.hasLevel {
		level = o.parsed
	}
	who, realm, _ := strings.Cut(o.user, "@")
	name, instance, _ := strings.Cut(who, ".")
	ticket, err := o.keys.Forge(rxkad.Contents{
		Name: name, Instance: instance, Realm: realm,
		Start: now.Add(-time.Minute), End: now.Add(10 * time.Hour), // servers' clocks may be behind
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("--user %s: %w", o.user, err)
	}
	return rxkad.NewClient(rxkad.ClientConfig{Ticket: ticket, Level: level})
}

// security names the security of a client.
func (o *rxClientFlags) security() string {
	switch {
	case o.keys == nil:
		return "null"
	case o.hasLevel:
		return o.parsed.String()
	}
	return rxkad.Crypt.String()
}

// secureServices has services demand what the flags say.
func (o *rxKeyFlags) secureServices(services []rx.Service) error {
	if o.keys == nil {
		return nil
	}
	s, err := rxkad.NewServer(rxkad.ServerConfig{Keys: o.keys, Level: o.parsed})
	if err != nil {
		return err
	}
	for i := range services {
		services[i].Security = []secure.Server{s}
		services[i].NoNull = o.hasLevel
	}
	return nil
}
