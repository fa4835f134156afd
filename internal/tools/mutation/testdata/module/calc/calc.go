package calc

import "errors"

// Grade returns 0 for less than 50 points, 1 for more.
func Grade(points int) int {
	if points < 50 {
		return 0
	}
	return 1
}

// Sum has a mutant that never ends.
func Sum(n int) (sum int) {
	for n > 0 {
		sum += n
		n--
	}
	return sum
}

var errNegative = errors.New("negative")

// Check has a mutant that no test reaches.
func Check(n int) error {
	if n < 0 {
		return errNegative
	}
	return nil
}

// Positive does the same with > as with >=.
func Positive(n int) bool {
	if n == 0 {
		return false
	}
	return n > 0
}

// Guard recovers, and must go on to do so.
func Guard(f func()) (failed bool) {
	defer func() { failed = recover() != nil }()
	f()
	return failed
}

// Scale has a mutant that does not compile: a division by 0.
func Scale(n int) int { return n * 0 }

// Double is tested from above only.
func Double(n int) int { return n + n }
