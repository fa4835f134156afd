package dissect

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	ladderTime  = 13 // columns for the time
	ladderInner = 65 // columns between the two bars; with time and bars, 80
)

// Ladder returns a Handler that draws the exchange between two columns, the
// client's and the server's, in 80 columns. Where another connection
// continues, a heading says which.
func Ladder(w io.Writer, o Options) Handler {
	var clock clock
	current := 0
	return func(e *Event) error {
		if !o.Shows(e) || o.Segments && e.Kind == KindMessage {
			return nil
		}
		var b strings.Builder
		if e.Conn.Number != current {
			if current != 0 {
				b.WriteByte('\n')
			}
			current = e.Conn.Number
			ladderHead(&b, e.Conn)
		}
		text := e.String()
		at := fmt.Sprintf("%*.6f", ladderTime-1, clock.seconds(e.At.Time))
		switch e.Kind {
		case KindViolation, KindNote:
			if e.Kind == KindViolation {
				text = "!! " + text
			}
			for i, line := range wrap(text, ladderInner-4) {
				if i > 0 {
					at = ""
				}
				ladderLine(&b, at, "  "+pad(line, ladderInner-2))
			}
		default:
			lines := wrap(text, ladderInner-8)
			ladderLine(&b, at, ladderArrow(e.From, lines[0]))
			for _, line := range lines[1:] {
				if e.From == Client {
					line = "   " + pad(line, ladderInner-3)
				} else {
					line = fmt.Sprintf("%*s   ", ladderInner-3, line)
				}
				ladderLine(&b, "", line)
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
}

func ladderHead(b *strings.Builder, c *Connection) {
	fmt.Fprintf(b, "connection %d\n", c.Number)
	left, right := "client "+c.Addr[Client], "server "+c.Addr[Server]
	gap := max(1, ladderInner+2-len(left)-len(right))
	fmt.Fprintf(b, "%*s %s%s%s\n", ladderTime-1, "seconds", left, strings.Repeat(" ", gap), right)
}

func ladderLine(b *strings.Builder, at, inner string) {
	fmt.Fprintf(b, "%*s |%s|\n", ladderTime-1, at, inner)
}

// ladderArrow draws an arrow from a side, with the text near its origin.
func ladderArrow(from Side, text string) string {
	text = " " + text + " "
	shaft := ladderInner - 3 - utf8.RuneCountInString(text)
	if from == Client {
		return "--" + text + strings.Repeat("-", shaft) + ">"
	}
	return "<" + strings.Repeat("-", shaft) + text + "--"
}

// cut shortens text to n columns.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-3]) + "..."
}

// pad lengthens text to n columns.
func pad(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(text)))
}

// wrap breaks text into lines of at most n columns.
func wrap(text string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = cut(word, n)
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
