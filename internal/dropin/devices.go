//go:build linux

package dropin

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Most devices of a process (URNIC_MAX_DEVICES of the C half), and most ports of one.
const (
	maxDevices = 16
	maxPorts   = 8
)

// A deviceSetting is a device that a process has. All devices of a process are one RNIC: they
// differ in what they are called, and in the addresses of the host that are theirs.
type deviceSetting struct {
	name  string
	ports []netip.Addr // each bound to an address; the zero Addr stands for all of the host
}

// A wantedDevices is what URNIC_DEVICES says.
type wantedDevices struct {
	count int            // of devices with one port, on as many addresses of the host; or 0
	ports [][]netip.Addr // of each device; or nil
}

// parseDevices reads a number, or addresses: a comma between devices, a plus sign between the
// ports of one.
func parseDevices(value string) (w wantedDevices, err error) {
	if n, err := strconv.Atoi(value); err == nil {
		if n < 1 || n > maxDevices {
			return w, fmt.Errorf("%q: must be 1 to %d", value, maxDevices)
		}
		return wantedDevices{count: n}, nil
	}
	seen := map[netip.Addr]bool{}
	for device := range strings.SplitSeq(value, ",") {
		var ports []netip.Addr
		for port := range strings.SplitSeq(device, "+") {
			a, err := netip.ParseAddr(port)
			if a = a.Unmap(); err != nil || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() || seen[a] {
				return w, fmt.Errorf("%q: must be a number of devices, or their addresses, each once, such as 192.0.2.1,192.0.2.2", value)
			}
			seen[a] = true
			ports = append(ports, a)
		}
		if len(ports) > maxPorts {
			return w, fmt.Errorf("a device with %d ports: at most %d", len(ports), maxPorts)
		}
		w.ports = append(w.ports, ports)
	}
	if len(w.ports) > maxDevices {
		return w, fmt.Errorf("%d devices: at most %d", len(w.ports), maxDevices)
	}
	return w, nil
}

// devices returns the devices that the settings make on a host with these GIDs.
func (s *settings) devices(host []GID) ([]deviceSetting, error) {
	ports := s.wanted.ports
	switch {
	case s.wanted.count > 1:
		for i := range host {
			if a := host[i].addr(); len(ports) < s.wanted.count && !a.IsLinkLocalUnicast() {
				ports = append(ports, []netip.Addr{a})
			}
		}
		if len(ports) < s.wanted.count {
			return nil, fmt.Errorf("URNIC_DEVICES: %d devices, and this host has %d addresses: name those of the devices, loopback ones such as 127.0.0.2 too",
				s.wanted.count, len(ports))
		}
	case ports == nil:
		ports = [][]netip.Addr{{{}}}
	}
	all := make([]deviceSetting, len(ports))
	for i := range ports {
		for _, a := range ports[i] {
			if a.IsValid() && len(bound(host, a)) == 0 {
				return nil, fmt.Errorf("URNIC_DEVICES: %v is no address of this host", a)
			}
		}
		all[i] = deviceSetting{name: s.device, ports: ports[i]}
		if len(ports) > 1 {
			all[i].name = numbered(s.device, i)
		}
		if !ValidDeviceName(all[i].name) {
			return nil, fmt.Errorf("URNIC_DEVICE: %q is too long for a name", all[i].name)
		}
	}
	return all, nil
}

// numbered returns the name of the i-th device: a number at the end of a name is that of the
// first one.
func numbered(name string, i int) string {
	stem := strings.TrimRight(name, "0123456789")
	first, err := strconv.ParseUint(name[len(stem):], 10, 16)
	if err != nil { // there is none, or one that only looks like a number
		stem, first = name, 0
	}
	return stem + strconv.FormatUint(first+uint64(i), 10)
}

// bound returns the entries of a GID table that are an address. Loopback addresses are all there,
// whether the host lists them or not.
func bound(all []GID, a netip.Addr) []GID {
	var gids []GID
	for i := range all {
		if all[i].addr() == a {
			gids = append(gids, all[i])
		}
	}
	if len(gids) > 0 || !a.IsLoopback() {
		return gids
	}
	lo := slices.IndexFunc(all, func(g GID) bool { return g.addr().IsLoopback() })
	if lo < 0 {
		return nil
	}
	return []GID{{Raw: a.As16(), IfIndex: all[lo].IfIndex}}
}

// portGIDs returns the GID table of a port. Port 0 is that of a queue pair whose program has not
// said any.
func (e *Engine) portGIDs(device, port uint32) []GID {
	if port = max(port, 1); uint64(device) >= uint64(len(e.devices)) || uint64(port) > uint64(len(e.devices[device].ports)) {
		return nil
	}
	a := e.devices[device].ports[port-1]
	if !a.IsValid() {
		return e.gids.list()
	}
	return bound(e.gids.list(), a)
}

// GID tells an entry of the GID table of a device's port.
func (e *Engine) GID(device, port, index uint32, out *GID) Errno {
	all := e.portGIDs(device, port)
	if out == nil || port == 0 || uint64(index) >= uint64(len(all)) {
		return syscall.EINVAL
	}
	*out = all[index]
	return ok
}

// deviceGUID returns the GUID of a device: devices of one host have numbers that follow each other.
func deviceGUID(index int) (g [8]byte) {
	first := guid()
	binary.BigEndian.PutUint64(g[:], binary.BigEndian.Uint64(first[:])+uint64(index))
	return g
}
