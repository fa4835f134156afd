package main

import (
	"bufio"
	"os"
	"runtime"
	"strings"
	"time"
)

// A machine is what the figures depend on.
type machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	OS         string `json:"os"`
	Congestion string `json:"congestion_control"`
	Go         string `json:"go"`
	Date       string `json:"date"`
}

// thisMachine describes where the program runs.
func thisMachine(now time.Time) machine {
	return machine{
		CPU: field("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(),
		Kernel:     word("/proc/sys/kernel/osrelease"),
		OS:         strings.Trim(field("/etc/os-release", "PRETTY_NAME", "="), `"`),
		Congestion: word("/proc/sys/net/ipv4/tcp_congestion_control"),
		Go:         runtime.Version(), Date: now.UTC().Format("2006-01-02"),
	}
}

// word returns the text of a file of one word.
func word(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(b))
}

// field returns what follows a key at the beginning of a line.
func field(name, key, mark string) string {
	f, err := os.Open(name)
	if err != nil {
		return unknown
	}
	defer func() { _ = f.Close() }() // it was only read
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, found := strings.Cut(s.Text(), mark); found && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return unknown
}

const unknown = "unknown"
