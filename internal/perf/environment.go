package perf

import (
	"bufio"
	"bytes"
	"cmp"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// setEnvironment tells where the program runs.
func (r *Report) setEnvironment() {
	if info, ok := debug.ReadBuildInfo(); ok {
		r.Urnic = version(info)
	}
	r.Go, r.OS, r.Cores = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, runtime.GOMAXPROCS(0)
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		r.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		r.CPU = cpuModel(b)
	}
}

// version names the build.
func version(info *debug.BuildInfo) string {
	v := cmp.Or(info.Main.Version, "(devel)")
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if i < 0 {
		return v
	}
	revision := info.Settings[i].Value
	return v + " " + revision[:min(len(revision), 12)]
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
