//go:build !linux

package memcheck

// check can't tell.
func check(uint64, uint64, bool) error { return nil }
