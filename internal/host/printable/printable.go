// Package printable makes text fit for a terminal that somebody else has written: a peer,
// or who made a file. Such text must not control the terminal that shows it, nor change the
// order in which its characters are read.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape returns a text in one line, with escapes, as of Go's strings, for all that can't be
// printed, and for what is no UTF-8. A text that can be printed stays as it is.
func Escape(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unprintable(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

// Name returns the name of something: as it is, or quoted, as in Go, if it can't be printed.
func Name(name string) string {
	if strings.IndexFunc(name, unprintable) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// Column returns a text for a column of a table, in which ? stands for each character that
// can't be printed.
func Column(s string) string {
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, s)
}

// JSON returns JSON that means the same, with JSON's escapes for all in it that can't be
// printed but the ends of lines: encoding/json leaves some of that as it is.
func JSON(encoded []byte) []byte {
	b := make([]byte, 0, len(encoded))
	for _, r := range string(encoded) {
		switch {
		case r == '\n' || !unprintable(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
