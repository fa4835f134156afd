package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Answered tells when the server was heard last, and whether the last call brought more than
// that nothing came in time.
func TestAnsweredTellsWhenTheServerWasHeard(t *testing.T) {
	const takes = 100 * time.Millisecond
	for _, tt := range []struct {
		name   string
		answer Answer // of the second call; the first succeeds
		hangs  bool
		heard  bool // in the second call
		last   bool
	}{
		{name: "a result", heard: true, last: true},
		{name: "an error", answer: Answer{Error: &Error{Code: CodeRefused}}, heard: true, last: true},
		{name: "nothing came in time", answer: Answer{Error: &Error{Code: CodeTimeout}}, heard: true},
		{name: "no answer", hangs: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer theirs.Close()
				defer ours.Close()
				go func() {
					lines := bufio.NewReader(theirs)
					for n := uint64(1); ; n++ {
						if _, err := lines.ReadBytes('\n'); err != nil {
							return
						}
						answer := Answer{ID: 1}
						if n > 1 {
							answer = tt.answer
							answer.ID = n
						}
						time.Sleep(takes)
						if n > 1 && tt.hangs {
							continue
						}
						line, _ := json.Marshal(answer)
						_, _ = theirs.Write(append(line, '\n'))
					}
				}()
				c := &Client{conn: ours, lines: bufio.NewReader(ours)}
				if asked, answered, _ := c.Answered(); !asked.IsZero() || !answered.IsZero() {
					t.Errorf("before the first call: asked %v, answered %v", asked, answered)
				}
				began := time.Now()
				check(t, c.call(t.Context(), "first", nil, nil))
				first := began.Add(takes)
				if asked, answered, last := c.Answered(); !asked.Equal(first) || !answered.Equal(first) || !last {
					t.Errorf("after the first call: asked %v, answered %v, last %t; want %v", asked, answered, last, first)
				}
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 2*takes)
				defer cancel()
				second := time.Now().Add(takes)
				if tt.hangs {
					second = time.Now().Add(2 * takes)
				}
				err := c.call(ctx, "second", nil, nil)
				if tt.hangs && !errors.Is(err, context.DeadlineExceeded) || !tt.hangs && CodeOf(err) != codeWanted(tt.answer) {
					t.Fatalf("the second call: %v", err)
				}
				heard := first
				if tt.heard {
					heard = second
				}
				if asked, answered, last := c.Answered(); !asked.Equal(second) || !answered.Equal(heard) || last != tt.last {
					t.Errorf("asked %v, answered %v, last %t; want %v, %v, %t", asked, answered, last, second, heard, tt.last)
				}
			})
		})
	}
}

func codeWanted(a Answer) Code {
	if a.Error == nil {
		return ""
	}
	return a.Error.Code
}
