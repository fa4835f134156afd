//go:build linux

package dropin

import (
	"net"

	"urnic/internal/dropin/sysfs"
)

// View returns what sysfs would show of the devices of a process with this environment, as
// the host is now.
func View(environment []string) ([]sysfs.Device, error) {
	s, err := parseSettings(environment)
	if err != nil {
		return nil, err
	}
	names := map[uint32]string{}
	interfaces, _ := net.Interfaces() // none is none
	for _, i := range interfaces {
		names[uint32(i.Index)] = i.Name
	}
	host := hostGIDs()
	devices, err := s.devices(host)
	if err != nil {
		return nil, err
	}
	all := make([]sysfs.Device, len(devices))
	for i, d := range devices {
		all[i] = sysfs.Device{Name: d.name, Version: firmware, GUID: deviceGUID(i), IWARP: !s.ethernet}
		for _, address := range d.ports {
			gids := host
			if address.IsValid() {
				gids = bound(host, address)
			}
			var port sysfs.Port
			for _, g := range gids {
				if name, there := names[g.IfIndex]; there {
					port.GIDs = append(port.GIDs, sysfs.GID{Raw: g.Raw, NetDev: name})
				}
			}
			all[i].Ports = append(all[i].Ports, port)
		}
	}
	return all, nil
}
