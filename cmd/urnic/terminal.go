package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// What a peer has said must not control the terminal that shows it, nor change the order
// in which its text is read. shown is for names, escaped for sentences that may have some
// in them, and jsonLine for what programs read.

// showsColors reports whether text for w may have colors: w is a terminal that shows them,
// and NO_COLOR (https://no-color.org) isn't set.
func showsColors(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// shown returns a name that a peer has, as a terminal can show it.
func shown(name string) string {
	for _, r := range name {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return strconv.Quote(name)
		}
	}
	return name
}

// escaped returns a text with escapes, as of Go's strings, for all that can't be printed.
func escaped(s string) string {
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

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// jsonLine returns v as JSON in one line, in which escapes of JSON stand for all that can't
// be printed: json.Marshal leaves some of that as it is.
func jsonLine(v any) (string, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range string(line) {
		switch {
		case !unprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String(), nil
}

// printable is what a server has said, in a column of a table.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, s)
}
