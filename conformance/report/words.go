package report

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds a text that comes from a case, in bytes. The JSON report has
// the whole.
const maxText = 4096

// lines makes a text safe to show: what is no printable character, and what is no
// UTF-8, becomes an escape such as \x1b. Only the ends of lines stay.
func lines(s string) string { return clean(s, true) }

// line makes a text safe to show in one line.
func line(s string) string { return clean(s, false) }

func clean(s string, multiline bool) string {
	rest := 0
	if len(s) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s, rest = s[:end], len(s)-end
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case r == '\n' && multiline:
			b.WriteByte('\n')
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	if rest > 0 {
		b.WriteString(" ... and " + count(rest, "octet") + " more")
	}
	return b.String()
}

// count says how many of something there are.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// wrap breaks a text into lines of at most n columns, and where it has line ends
// of its own. A word that is longer is broken.
func wrap(text string, n int) []string {
	n = max(n, 1)
	var out []string
	for part := range strings.SplitSeq(text, "\n") {
		current := ""
		for word := range strings.FieldsSeq(part) {
			if current != "" && columns(current)+1+columns(word) <= n {
				current += " " + word
				continue
			}
			if current != "" {
				out = append(out, current)
			}
			for columns(word) > n {
				head := string([]rune(word)[:n])
				out = append(out, head)
				word = word[len(head):]
			}
			current = word
		}
		out = append(out, current)
	}
	return out
}

// fold breaks a line every n columns and leaves its spaces as they are.
func fold(s string, n int) []string {
	r := []rune(s)
	var out []string
	for n = max(n, 1); len(r) > n; r = r[n:] {
		out = append(out, string(r[:n]))
	}
	return append(out, string(r))
}

func columns(s string) int { return utf8.RuneCountInString(s) }

// pad lengthens a text to n columns.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-columns(s))) }
