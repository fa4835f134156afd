//go:build !race

package udp

// sent and received are for the race detector.
func sent() {}

func received() {}
