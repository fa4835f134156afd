package perf

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseSizes parses sizes in bytes with the units K, M and G (powers of 1024)
// and commas between them, such as "64,4K,1M", or "all", which stands for the
// powers of two from 2 bytes to 8 MiB.
func ParseSizes(s string) ([]int, error) {
	if s == "all" {
		var sizes []int
		for n := 2; n <= 8<<20; n *= 2 {
			sizes = append(sizes, n)
		}
		return sizes, nil
	}
	return list(s, parseSize)
}

// ParseCounts parses numbers with commas between them, such as "1,64".
func ParseCounts(s string) ([]int, error) {
	return list(s, func(word string) (int, error) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("%q is no number from 1 on", word)
		}
		return n, nil
	})
}

// most is how many elements a list may have.
const most = 64

func list(s string, parse func(string) (int, error)) ([]int, error) {
	words := strings.Split(s, ",")
	if len(words) > most {
		return nil, fmt.Errorf("%d values: give up to %d", len(words), most)
	}
	values := make([]int, len(words))
	for i, w := range words {
		v, err := parse(strings.TrimSpace(w))
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func parseSize(word string) (int, error) {
	n := len(word)
	shift := 0
	if n > 0 {
		switch word[n-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
	}
	if shift > 0 {
		n--
	}
	v, err := strconv.Atoi(word[:n])
	if err != nil || v < 1 || v > MaxSize>>shift {
		return 0, fmt.Errorf("%q is no size: must be 1 to 1G, such as 64, 4K or 1M", word)
	}
	return v << shift, nil
}

// sizeText writes a size as ParseSizes reads it.
func sizeText(n int) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "G"}, {20, "M"}, {10, "K"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return strconv.Itoa(n>>u.shift) + u.name
		}
	}
	return strconv.Itoa(n)
}

// ParseMemory parses an amount of memory as ParseSizes does a size, but without
// an upper bound that one would meet.
func ParseMemory(s string) (uint64, error) {
	digits := strings.TrimRight(s, "kKmMgG")
	n, err := strconv.ParseUint(digits, 10, 33)
	if err != nil || n == 0 || len(s)-len(digits) > 1 {
		return 0, fmt.Errorf("%q is no amount of memory: must be a number of bytes, such as 256M or 2G", s)
	}
	unit, err := parseSize("1" + s[len(digits):])
	return n * uint64(unit), err
}
