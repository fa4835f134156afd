package plural

import "fmt"

// Count returns a number and a noun in singular or plural: "1 byte", "0 bytes", "2 replies". The noun is an
// English one in singular, perhaps with words before it.
func Count[N ~int | ~int32 | ~int64 | ~uint | ~uint16 | ~uint32 | ~uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, Noun(noun))
}

// Noun returns the plural of a noun.
func Noun(noun string) string {
	last := len(noun) - 1
	switch {
	case last > 0 && noun[last] == 'y' && !isVowel(noun[last-1]):
		return noun[:last] + "ies"
	case last >= 0 && noun[last] == 's':
		return noun + "es"
	}
	return noun + "s"
}

func isVowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	}
	return false
}
