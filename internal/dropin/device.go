//go:build linux

package dropin

import (
	"crypto/sha256"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"urnic/pd"
)

const deviceName = "urnic0"

// Device tells what the device is like, as all contexts see it.
func (e *Engine) Device(out *DeviceAttr) Errno {
	if out == nil {
		return syscall.EINVAL
	}
	a := e.device.Attr()
	reads := a.MaxSGE // several sinks are several Reads
	if e.settings.strict {
		reads = a.MaxReadSGE
	}
	*out = DeviceAttr{
		GUID: guid(), IWARP: flag(!e.settings.ethernet), Strict: flag(e.settings.strict),
		MaxQP: maxQPs, MaxQPWR: uint32(a.MaxWR), MaxSGE: uint32(a.MaxSGE), MaxReadSGE: uint32(reads), MaxInline: uint32(a.MaxInline),
		MaxCQ: uint32(a.Limits[pd.CompletionQueues]), MaxCQE: uint32(a.MaxCQE),
		MaxMR: uint32(a.Limits[pd.Regions]), MaxPD: uint32(a.Limits[pd.Domains]), MaxMW: uint32(a.Limits[pd.Windows]),
		MaxSRQ: uint32(a.Limits[pd.SharedQueues]), MaxSRQWR: uint32(a.MaxWR), MaxSRQSGE: uint32(a.MaxSGE),
		MaxReadAtomic: uint32(min(a.MaxIRD, a.MaxORD)),
		GIDs:          uint32(len(e.gids.list())),
		MaxMRSize:     1 << 46, // a Go slice, on Linux
		MaxMessage:    1 << 31, // as a port may say; the RNIC takes rnic.MaxMessage
	}
	copy(out.Name[:], deviceName)
	copy(out.Version[:len(out.Version)-1], version())
	return ok
}

// version is that of the build, as far as it knows: programs see it as the version
// of the firmware.
var version = sync.OnceValue(func() string {
	if info, some := debug.ReadBuildInfo(); some && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()")
	}
	return "devel"
})

// GID tells an entry of the GID table.
func (e *Engine) GID(index uint32, out *GID) Errno {
	if out == nil {
		return syscall.EINVAL
	}
	all := e.gids.list()
	if uint64(index) >= uint64(len(all)) {
		return syscall.EINVAL
	}
	*out = all[index]
	return ok
}

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
