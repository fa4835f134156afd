package main

import "time"

// A cpuMeter measures the share of the processors' time that this process takes.
type cpuMeter struct {
	on   bool
	at   time.Time
	used time.Duration
}

// begin begins to measure, if it is wanted and the system can tell.
func (m *cpuMeter) begin(wanted bool) {
	var ok bool
	m.at = time.Now()
	m.used, ok = cpuTime()
	m.on = wanted && ok
}

// percent returns the share since the last call, in percent of all processors; -1 if it is not measured.
func (m *cpuMeter) percent() float64 {
	if !m.on {
		return -1
	}
	now := time.Now()
	used, _ := cpuTime()
	share := float64(used-m.used) / max(1, float64(now.Sub(m.at))) / processors
	m.at, m.used = now, used
	return 100 * share
}
