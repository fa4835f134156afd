//go:build linux

package dropin

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are what the environment of a process says, see docs/drop-in.md.
type settings struct {
	log      uint32
	strict   bool          // refuse what iWARP hardware refuses
	ethernet bool          // say to be an Ethernet RDMA device, not an RNIC
	port     uint16        // first of the rendezvous listeners
	pcap     string        // file to record to, or ""
	settle   time.Duration // how long initiators wait before their first FPDU: Linux siw may lose one
}

// DefaultRendezvousPort is the first TCP port of rendezvous listeners.
const DefaultRendezvousPort = 21000

func parseSettings(environment []string) (settings, error) {
	s := settings{log: logError, port: DefaultRendezvousPort}
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		var err error
		switch name {
		case "URNIC_LOG":
			level, known := levels[value]
			if s.log = level; !known {
				err = choice(value, slices.Sorted(maps.Keys(levels)))
			}
		case "URNIC_STRICT":
			if s.strict = value == "1"; value != "" && value != "0" && value != "1" {
				err = choice(value, []string{"0", "1"})
			}
		case "URNIC_TRANSPORT":
			if s.ethernet = value == "ethernet"; value != "" && value != "iwarp" && value != "ethernet" {
				err = choice(value, []string{"iwarp", "ethernet"})
			}
		case "URNIC_RENDEZVOUS_PORT":
			if value == "" {
				break
			}
			n, bad := strconv.ParseUint(value, 10, 16)
			if s.port = uint16(n); bad != nil || n == 0 || n > 1<<16-maxSlots {
				err = fmt.Errorf("%q: say a port from 1 to %d", value, 1<<16-maxSlots)
			}
		case "URNIC_SETTLE":
			if value == "" {
				break
			}
			if s.settle, err = time.ParseDuration(value); err == nil && s.settle < 0 {
				err = fmt.Errorf("%v: say how long to wait, or 0", s.settle)
			}
		case "URNIC_PCAP":
			s.pcap = strings.ReplaceAll(value, "%p", strconv.Itoa(os.Getpid()))
		}
		if err != nil {
			return settings{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

func choice(value string, of []string) error {
	return fmt.Errorf("%q: say one of %s", value, strings.TrimPrefix(strings.Join(of, ", "), ", "))
}
