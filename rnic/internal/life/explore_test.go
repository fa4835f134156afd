package life

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// The exploration runs two machines against each other through every interleaving of a
// bounded script. A side is a model of what runs a machine: a program, a transmitter and a
// receiver, one step of which is one choice. What travels between the sides is a queue of
// items in each direction. After each step, what the machine has said is judged by what
// has really become of the requests, see explore_check_test.go.

// An action is what a side can do in one step.
type action uint8

const (
	program action = iota
	transmit
	receive
	expire
)

var actionNames = [...]string{program: "program", transmit: "transmitter", receive: "receiver", expire: "time"}

type step struct {
	side *modelSide
	act  action
}

func (st step) do() {
	switch st.act {
	case program:
		st.side.program()
	case transmit:
		st.side.transmit()
	case receive:
		st.side.receive()
	case expire:
		st.side.expire()
	}
}

// String says what the step is, before it is done.
func (st step) String() string {
	s := st.side.name + ": " + actionNames[st.act]
	if st.act == program {
		s += " " + st.side.script[0]
	}
	return s
}

// steps appends what can happen at this side now.
func (s *modelSide) steps(all []step) []step {
	if s.ready() {
		all = append(all, step{s, program})
	}
	if s.over {
		return all
	}
	if s.kick {
		all = append(all, step{s, transmit})
	}
	if s.mayReceive() {
		all = append(all, step{s, receive})
	}
	if s.timers && s.armed {
		all = append(all, step{s, expire})
	}
	return all
}

// A path is a sequence of choices.
type path struct {
	choices, widths []int
	log             func(format string, args ...any) // or nil
}

// next prepares the next path, and reports whether there is one.
func (p *path) next() bool {
	for i := len(p.choices) - 1; i >= 0; i-- {
		if p.choices[i]+1 < p.widths[i] {
			p.choices[i]++
			p.choices, p.widths = p.choices[:i+1], p.widths[:i+1]
			return true
		}
	}
	return false
}

// run carries out the path, and makes it longer by first choices. It returns what went
// wrong.
func (p *path) run(sc *script) (failed string) {
	a, b := newSide("initiator", sc.a), newSide("responder", sc.b)
	a.peer, b.peer = b, a
	a.connect(sc.rtr)
	var buf [8]step
	for depth := 0; ; {
		steps := b.steps(a.steps(buf[:0]))
		if len(steps) == 0 {
			if timePasses(a) || timePasses(b) {
				continue
			}
			a.settled()
			b.settled()
		}
		if failed = a.failed + b.failed; failed != "" || len(steps) == 0 {
			return failed
		}
		if depth == len(p.choices) {
			p.choices, p.widths = append(p.choices, 0), append(p.widths, len(steps))
		}
		st := steps[p.choices[depth]%len(steps)]
		depth++
		if p.log == nil {
			st.do()
			continue
		}
		what := st.String()
		st.do()
		p.log("%-28s %v and %v", what, a.m.State(), b.m.State())
	}
}

// timePasses lets the time run out that a side has for the end, when nothing else can
// happen. It reports whether there was such a time.
func timePasses(s *modelSide) bool {
	if !s.armed || s.over {
		return false
	}
	s.expire()
	return true
}

// At least so many schedules are run, all different.
const leastSchedules = 1_000_000

// Under the race detector, of which one goroutine is no affair, and where the tests are
// only to be run once, each script is explored so far.
const fewSchedules = 2000

func TestEveryInterleavingOfTwoLives(t *testing.T) {
	few := raceEnabled || testing.Short() || testing.CoverMode() != ""
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // each schedule leaves a little
	var total atomic.Int64
	t.Run("scripts", func(t *testing.T) {
		for i := range scripts {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				n := explore(t, i, few)
				t.Logf("%s: %d schedules", &scripts[i], n)
				total.Add(int64(n))
			})
		}
	})
	t.Logf("%d schedules", total.Load())
	if !few && total.Load() < leastSchedules && !t.Failed() && flag.Lookup("test.run").Value.String() == "" {
		t.Errorf("%d schedules, want %d", total.Load(), leastSchedules)
	}
}

// explore runs all schedules of a script, or few, and returns how many that were.
func explore(t *testing.T, i int, few bool) (n int) {
	t.Helper()
	var p path
	for more := true; more && (!few || n < fewSchedules); more = p.next() {
		n++
		if failed := p.run(&scripts[i]); failed != "" {
			t.Errorf("%s: %s\nsee go test -run TestReplay -v -replay '%d:%s'", &scripts[i], failed, i, strings.Trim(fmt.Sprint(p.choices), "[]"))
			return n
		}
	}
	return n
}

var replay = flag.String("replay", "", "run one `schedule`, a script and its choices as a failure of the exploration prints them, and log its steps")

// TestReplay runs the schedules that have shown a fault before, and the one of -replay.
func TestReplay(t *testing.T) {
	for _, s := range append(regressions, *replay) {
		if s == "" {
			continue
		}
		number, choices, _ := strings.Cut(s, ":")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(scripts) {
			t.Fatalf("%q names no script", s)
		}
		var p path
		for c := range strings.FieldsSeq(choices) {
			n, err := strconv.Atoi(c)
			if err != nil || n < 0 {
				t.Fatalf("%q is no schedule: %q", s, c)
			}
			p.choices, p.widths = append(p.choices, n), append(p.widths, 0)
		}
		t.Log(&scripts[i])
		p.log = t.Logf
		if failed := p.run(&scripts[i]); failed != "" {
			t.Errorf("%s: %s", &scripts[i], failed)
		}
	}
}
