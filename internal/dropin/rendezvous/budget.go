package rendezvous

import "time"

// The bounds of Budget. InfiniBand's own are often shorter than it takes to start the
// peer's program on a busy machine. The shortest is a default.
const (
	ShortestBudget = 4 * time.Second
	longestBudget  = 2 * time.Minute
)

// Budget returns how long a queue pair tries to reach its peer once there is something
// to send, given what its program sets on the way to RTS: a time-out of 4.096 µs *
// 2^timeout, of which hardware may make four times as much (InfiniBand Architecture
// §9.7.6.1.3), for each of retries+1 tries; but shortest at least, and 2 minutes at most
// or shortest.
// Timeout 0 stands for no bound, and so does the result 0.
func Budget(timeout, retries uint32, shortest time.Duration) time.Duration {
	if timeout == 0 {
		return 0
	}
	each := 4 * 4096 * time.Nanosecond << min(timeout, 31)
	return max(min(each*time.Duration(min(retries, 7)+1), longestBudget), shortest)
}
