package memcheck

import "os"

func check(from, n uint64, write bool) error {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil // there is nothing to go by
	}
	defer func() { _ = maps.Close() }()
	return search(maps, from, n, write)
}
