//go:build linux

package dropin

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"urnic/mpa"
)

// settings are what the environment of a process says, see docs/drop-in.md.
type settings struct {
	log        uint32
	device     string        // the name of the first device
	wanted     wantedDevices // none: one, with all addresses of the host
	strict     bool          // refuse what iWARP hardware refuses
	ethernet   bool          // say to be an Ethernet RDMA device, not an RNIC
	port       uint16        // first of the rendezvous listeners
	rendezvous whereCalled   // where peers without rdma_cm can call the process
	pcap       string        // file to record to, or ""
	sysfs      string        // directory with the counters of ports, or ""
	top        string        // directory in which urnic top finds the process, or ""
	timeline   string        // directory to record a timeline into, or ""
	crc        mpa.CRCPolicy // what connections want of CRCs
	times      times         // how long to wait for programs and their peers
	settle     time.Duration // how long initiators wait before their first FPDU: Linux siw may lose one
}

// whereCalled is where a process can be called.
type whereCalled struct {
	off     bool       // nowhere, and it calls nobody
	address netip.Addr // the zero Addr stands for all addresses
}

// DefaultRendezvousPort is the first TCP port of rendezvous listeners.
const DefaultRendezvousPort = 21000

func parseSettings(environment []string) (settings, error) {
	s := settings{log: logError, device: defaultDevice, port: DefaultRendezvousPort, times: defaultTimes()}
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		var err error
		switch name {
		case "URNIC_LOG":
			level, known := levels[value]
			if s.log = level; !known {
				err = choice(value, slices.Sorted(maps.Keys(levels)))
			}
		case "URNIC_DEVICE":
			if value == "" {
				break
			}
			if s.device = value; !ValidDeviceName(value) {
				err = fmt.Errorf("%q: must be a name of at most %d letters, digits, dots, dashes and underscores, such as mlx5_0", value, maxDeviceName)
			}
		case "URNIC_DEVICES":
			if value != "" {
				s.wanted, err = parseDevices(value)
			}
		case "URNIC_STRICT":
			if s.strict = value == "1"; value != "" && value != "0" && value != "1" {
				err = choice(value, []string{"0", "1"})
			}
		case "URNIC_TRANSPORT":
			if s.ethernet = value == "ethernet"; value != "" && value != "iwarp" && value != "ethernet" {
				err = choice(value, []string{"iwarp", "ethernet"})
			}
		case "URNIC_CRC":
			if value != "" {
				s.crc, err = mpa.ParseCRCPolicy(value)
			}
		case "URNIC_RENDEZVOUS_PORT":
			if value == "" {
				break
			}
			n, bad := strconv.ParseUint(value, 10, 16)
			if s.port = uint16(n); bad != nil || n == 0 || n > 1<<16-maxSlots {
				err = fmt.Errorf("%q: must be a port from 1 to %d", value, 1<<16-maxSlots)
			}
		case "URNIC_RENDEZVOUS":
			s.rendezvous, err = parseWhereCalled(value)
		case "URNIC_SETTLE":
			if value == "" {
				break
			}
			if s.settle, err = time.ParseDuration(value); err == nil && s.settle < 0 {
				err = fmt.Errorf("%v: must be 0 or more", s.settle)
			}
		case "URNIC_TIMES":
			err = s.times.parse(value)
		case "URNIC_SYSFS":
			s.sysfs = value
		case "URNIC_TOP":
			switch {
			case value == "" || value == "off":
				s.top = ""
			case filepath.IsAbs(value):
				s.top = value
			default:
				err = fmt.Errorf("%q: say the path of a directory, from the root, or off", value)
			}
		case "URNIC_TIMELINE":
			if s.timeline = value; value != "" && !filepath.IsAbs(value) {
				err = fmt.Errorf("%q: say the path of a directory, from the root", value)
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

func parseWhereCalled(value string) (w whereCalled, err error) {
	switch value {
	case "":
	case "off":
		w.off = true
	default:
		if w.address, err = netip.ParseAddr(value); err != nil || w.address.IsMulticast() {
			err = fmt.Errorf("%q: must be an address of this host, or off", value)
		}
	}
	return w, err
}

func choice(value string, of []string) error {
	return fmt.Errorf("%q: must be one of %s", value, strings.TrimPrefix(strings.Join(of, ", "), ", "))
}
