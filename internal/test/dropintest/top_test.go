//go:build dropin

package dropintest

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A topRound is what a test looks at of a round of urnic top --json.
type topRound struct {
	Processes []struct {
		PID     int
		Command string
		Device  struct {
			Name string
			QPs  []struct {
				State    string
				Sent     struct{ Messages uint64 }
				Received struct{ Messages uint64 }
			}
			CQs []struct{ Polled uint64 }
			MRs []struct {
				BytesIn uint64 `json:"bytes_in"`
			}
		}
	}
	Unanswered []struct{ Error string }
}

// top looks at what urnic top shows.
func (n *network) top(t *testing.T, dir string, flags ...string) (r topRound) {
	t.Helper()
	args := append([]string{"top", "--once", "--json", "--interval", "50ms", "--top", dir}, flags...)
	out := n.start(t, urnicCommand(args...)).wait()
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// urnic top shows the processes under urnic run with counters that move, and those that have ended no more, be it by
// themselves or by a signal. One that is stopped does not keep it from showing others.
func TestTopShowsProgramsUnderRun(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n, dir := newNetwork(t), directory(t)+"/urnic"
		server := n.start(t, m.run("--top "+dir, "rping -s -P -v"))
		server.listens(n, 7174)
		client := n.start(t, m.run("--top "+dir, "rping -c -a 127.0.0.1 -C 100000000"))
		sent := map[int]uint64{}
		look := func() (messages map[int]uint64, unanswered int) {
			t.Helper()
			r := n.top(t, dir, "--timeout", "500ms")
			messages = map[int]uint64{}
			for _, p := range r.Processes {
				for _, q := range p.Device.QPs {
					if q.State == "RTS" {
						messages[p.PID] += q.Sent.Messages
					}
				}
				if !strings.HasPrefix(p.Command, "rping -") || p.Device.Name != "urnic0" || len(p.Device.QPs) > 0 && (len(p.Device.CQs) == 0 || len(p.Device.MRs) == 0) {
					t.Errorf("%+v", p)
				}
			}
			return messages, len(r.Unanswered)
		}
		until := time.Now().Add(patience)
		for time.Now().Before(until) {
			if sent, _ = look(); sent[server.cmd.Process.Pid] > 0 && sent[client.cmd.Process.Pid] > 0 {
				break
			}
		}
		now, _ := look()
		for _, p := range []*program{server, client} {
			if pid := p.cmd.Process.Pid; now[pid] <= sent[pid] || sent[pid] == 0 {
				t.Errorf("%s has sent %d messages, and then %d\n%s", p.name, sent[pid], now[pid], p.output())
			}
		}
		if err := client.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if now, unanswered := look(); unanswered != 1 || now[server.cmd.Process.Pid] == 0 {
			t.Errorf("beside a process that is stopped: %v, and %d without an answer", now, unanswered)
		}
		client.interrupt(syscall.SIGKILL)
		if now, unanswered := look(); len(now) > 1 || unanswered != 0 {
			t.Errorf("after the client was killed: %v, and %d without an answer", now, unanswered)
		}
		server.interrupt(syscall.SIGKILL)
		if now, unanswered := look(); len(now) != 0 || unanswered != 0 {
			t.Errorf("after both were killed: %v, and %d without an answer", now, unanswered)
		}
	})
}

// With --top off, a program is not shown.
func TestTopDoesNotShowWhatIsOff(t *testing.T) {
	n, dir := newNetwork(t), directory(t)+"/urnic"
	server := n.start(t, interpose.run("--top off", "rping -s -P"), "URNIC_TOP="+dir)
	server.listens(n, 7174)
	if r := n.top(t, dir); len(r.Processes)+len(r.Unanswered) != 0 {
		t.Errorf("%+v", r)
	}
}

// The commands of docs/top.md succeed, one after the other.
func TestCommandsOfTheTopPageSucceed(t *testing.T) {
	n, dir := newNetwork(t), directory(t)
	shown, env := 0, "XDG_RUNTIME_DIR="+dir
	for _, line := range lines(t, "docs/top.md", "console") {
		command, is := strings.CutPrefix(line, "$ urnic ")
		if !is {
			continue
		}
		shown++
		command, behind := strings.CutSuffix(command, " &")
		if flags, program, is := strings.Cut(command, "-- "); is && behind {
			p := n.start(t, interpose.run(strings.TrimPrefix(flags, "run"), program), env)
			if strings.Contains(program, " -s ") {
				p.listens(n, 7174)
			}
			continue
		}
		p := n.start(t, urnicCommand(strings.Fields(command)...), env)
		if strings.Contains(command, "--listen") {
			p.listens(n, 9464)
			p.interrupt(syscall.SIGINT)
		}
		if out := p.wait(); !strings.Contains(out, "urnic0") && !strings.HasPrefix(out, "Serving metrics at http://127.0.0.1:9464/metrics\n") {
			t.Errorf("urnic %s:\n%s", command, out)
		}
	}
	if shown != 6 {
		t.Errorf("%d commands", shown)
	}
}
