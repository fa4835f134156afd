//go:build !unix

package main

import "time"

const processors = 1

// cpuTime is not known.
func cpuTime() (time.Duration, bool) { return 0, false }
