package perf

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"urnic/internal/host/version"
)

// setEnvironment says where the program runs.
func (r *Report) setEnvironment() {
	info, _ := debug.ReadBuildInfo()
	r.Urnic = version.Of(info, 12)
	r.Go, r.OS, r.Cores = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, runtime.GOMAXPROCS(0)
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		r.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		r.CPU = cpuModel(b)
	}
}

// cpuModel finds the name of the processor in what /proc/cpuinfo says.
func cpuModel(b []byte) string {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch strings.TrimSpace(name) {
		case "model name", "Model", "Processor":
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// mtuOf returns the MTU of the interface that has an address, or 0.
func mtuOf(a net.Addr) int {
	t, is := a.(*net.TCPAddr)
	if !is {
		return 0
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range interfaces {
		addrs, _ := i.Addrs() // of one that is gone, there are none
		for _, a := range addrs {
			if n, is := a.(*net.IPNet); is && n.IP.Equal(t.IP) {
				return i.MTU
			}
		}
	}
	return 0
}
