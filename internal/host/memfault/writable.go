//go:build !race

package memfault

// writable lets Update find out by itself.
func writable(*uint64) error { return nil }
