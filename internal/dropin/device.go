//go:build linux

package dropin

import (
	"crypto/sha256"
	"net"
	"os"
	"strings"
	"syscall"

	"urnic/internal/host/version"
	"urnic/pd"
)

// Device reports what a device is like, as all contexts see it. ENODEV says that there are not so
// many.
func (e *Engine) Device(index uint32, out *DeviceAttr) Errno {
	switch {
	case out == nil:
		return syscall.EINVAL
	case uint64(index) >= uint64(len(e.devices)):
		return syscall.ENODEV
	}
	d := &e.devices[index]
	a := e.device.Attr()
	reads := a.MaxSGE // several sinks are several Reads
	if e.settings.strict {
		reads = a.MaxReadSGE
	}
	*out = DeviceAttr{
		GUID: deviceGUID(int(index)), IWARP: flag(!e.settings.ethernet), Strict: flag(e.settings.strict),
		MaxQP: maxQPs, MaxQPWR: uint32(a.MaxWR - e.extraWRs()), MaxSGE: uint32(a.MaxSGE), MaxReadSGE: uint32(reads), MaxInline: uint32(a.MaxInline),
		MaxCQ: uint32(a.Limits[pd.CompletionQueues]), MaxCQE: uint32(a.MaxCQE),
		MaxMR: uint32(a.Limits[pd.Regions]), MaxPD: uint32(a.Limits[pd.Domains]), MaxMW: uint32(a.Limits[pd.Windows]),
		MaxSRQ: uint32(a.Limits[pd.SharedQueues]), MaxSRQWR: uint32(a.MaxWR), MaxSRQSGE: uint32(a.MaxSGE),
		MaxReadAtomic: uint32(min(a.MaxIRD, a.MaxORD)),
		GIDs:          uint32(len(e.portGIDs(index, 1))),
		Ports:         uint32(len(d.ports)),
		Bound:         flag(d.ports[0].IsValid()), QKeyViolations: e.qkeyViolations(),
		MaxMRSize:  1 << 46, // a Go slice, on Linux
		MaxMessage: 1 << 31, // as a port may say; the RNIC takes rnic.MaxMessage
	}
	copy(out.Name[:len(out.Name)-1], d.name)
	copy(out.Version[:len(out.Version)-1], firmware)
	return ok
}

// firmware is what programs see as the version of the firmware.
var firmware = strings.TrimPrefix(version.Number, "v")

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// guid returns the node GUID: the EUI-64 of an interface's address, or one that
// stays the same as long as the host's name does.
func guid() (g [8]byte) {
	all, _ := net.Interfaces() // the host's name serves as well
	for _, i := range all {
		if m := i.HardwareAddr; len(m) == 6 && i.Flags&net.FlagLoopback == 0 {
			return [8]byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
		}
	}
	name, _ := os.Hostname() // "" has a hash too
	sum := sha256.Sum256([]byte("urnic " + name))
	copy(g[:], sum[:])
	g[0] = g[0]&^1 | 2 // locally administered
	return g
}
