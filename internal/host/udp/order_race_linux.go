//go:build race

package udp

import "sync/atomic"

// order is what package syscall does for its reads and writes, which are not used here.
var order atomic.Uint64

// sent and received tell the race detector that what happened before a datagram was sent has happened before it was
// received.
func sent() { order.Add(1) }

func received() { order.Load() }
