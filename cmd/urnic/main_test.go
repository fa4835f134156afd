package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"urnic/internal/host/version"
	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) {
	adapt = patient
	if os.Getenv(asCommand) != "" {
		main()
	}
	leakcheck.Main(m)
}

// patient has commands wait as long as tests do for an answer, if a flag does not say how long.
func patient(cmd *cobra.Command) {
	for _, name := range []string{"timeout", "connect-timeout"} {
		if f := cmd.Flags().Lookup(name); f != nil {
			if err := f.Value.Set(hangGuard.String()); err != nil {
				panic(err)
			}
		}
	}
	for _, c := range cmd.Commands() {
		patient(c)
	}
}

// keepState has commands keep what they keep in a directory of the test, which all commands of
// the test share.
func keepState(t *testing.T) {
	t.Helper()
	const state = "STATE_DIRECTORY"
	if os.Getenv(state) == "" {
		t.Setenv(state, t.TempDir())
	}
}

// urnic runs the command as a user would.
func urnic(t *testing.T, stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	keepState(t)
	var out, errOut bytes.Buffer
	status = run(t.Context(), args, stdin, &out, &errOut)
	return status, out.String(), errOut.String()
}

// ok runs the command, which must succeed and complain of nothing, and returns
// what it prints: as a failure may tell only there what is wrong, that is shown
// whole.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errOut := urnic(t, nil, args...)
	if status != 0 || errOut != "" {
		t.Fatalf("%v: status %d, stderr %q, stdout:\n%s", args, status, errOut, out)
	}
	return out
}

// hangGuard is how long tests wait for what must come. It only ends those that hang: nothing
// may depend on how fast a machine is.
const hangGuard = time.Minute

// A process is a run of the command in the background.
type process struct {
	args        []string
	interrupt   context.CancelFunc
	done        chan struct{}
	status      int
	out, errOut output
}

// start runs the command in the background. It ends with the test at the latest.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with standard input.
func startWith(t *testing.T, stdin io.Reader, args ...string) *process {
	t.Helper()
	keepState(t)
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{args: args, interrupt: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.status = run(ctx, args, stdin, &p.out, &p.errOut)
		p.out.end(p.errOut.String())
		p.errOut.end("")
	}()
	t.Cleanup(func() {
		cancel()
		p.wait(t)
	})
	return p
}

// wait waits for the end.
func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(hangGuard):
		t.Fatalf("%v does not end; stderr %q, stdout:\n%s", p.args, p.errOut.String(), p.out.String())
	}
}

// await returns what a channel is sent.
func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(hangGuard):
		t.Fatalf("nothing has come in %v", hangGuard)
	}
	return v
}

// wasInterrupted interrupts the command, which must end as one whose work was interrupted.
func (p *process) wasInterrupted(t *testing.T) {
	t.Helper()
	p.interrupt()
	p.wait(t)
	if p.status != statusInterrupted || p.errOut.String() != "urnic: interrupted\n" {
		t.Errorf("%v: status %d, stderr %q", p.args, p.status, p.errOut.String())
	}
}

// end waits for the end, which must be a success that nothing is said of.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.wait(t)
	if p.status != 0 || p.errOut.String() != "" {
		t.Errorf("%v: status %d, stderr %q, stdout:\n%s", p.args, p.status, p.errOut.String(), p.out.String())
	}
}

// An output takes what a command writes, and can be read meanwhile.
type output struct {
	mu      sync.Mutex
	b       bytes.Buffer
	waiting []chan struct{} // for more of it
	ended   bool            // there is no more
	why     string          // is all that the command has told of that
}

// end says that there is no more, so that nobody waits for it.
func (o *output) end(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended, o.why = true, why
	for _, c := range o.waiting {
		close(c)
	}
	o.waiting = nil
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.waiting {
		close(c)
	}
	o.waiting = nil
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// wait waits until the output holds a text.
func (o *output) wait(t *testing.T, text string) {
	t.Helper()
	hung := time.After(hangGuard)
	for {
		o.mu.Lock()
		if strings.Contains(o.b.String(), text) {
			o.mu.Unlock()
			return
		}
		if o.ended {
			o.mu.Unlock()
			t.Fatalf("the command has ended, and never wrote %q: %s", text, o.why)
		}
		more := make(chan struct{})
		o.waiting = append(o.waiting, more)
		o.mu.Unlock()
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("%q was never written", text)
		case <-hung:
			t.Fatalf("%q was not written in %v, but:\n%s", text, hangGuard, o.String())
		}
	}
}

// wantError checks that a run of the command ended in status 1 and said why in
// one line with all of some texts.
func wantError(t *testing.T, args []string, status int, errOut string, texts ...string) {
	t.Helper()
	wantErrorStatus(t, args, 1, status, errOut, texts...)
}

// wantErrorStatus is wantError with another exit status.
func wantErrorStatus(t *testing.T, args []string, want, status int, errOut string, texts ...string) {
	t.Helper()
	if status != want || strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "urnic: ") || !strings.HasSuffix(errOut, "\n") {
		t.Errorf("%v: status %d, stderr %q", args, status, errOut)
	}
	for _, text := range texts {
		if !strings.Contains(errOut, text) {
			t.Errorf("%v: no %q in %q", args, text, errOut)
		}
	}
}

func temp(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWrongUsageIsToldInOneLine(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"frobnicate"}, "there is no command \"frobnicate\": `urnic help` lists them"},
		{[]string{"--frobnicate"}, "unknown flag: --frobnicate: see `urnic --help`"},
		{[]string{"dissect", "--frobnicate"}, "see `urnic dissect --help`"},
		{[]string{"version", "1"}, "`urnic version` takes no arguments, and \"1\" is one: see `urnic version --help`"},
		{[]string{"rping", "-c", "-a"}, "needs an argument"},
	} {
		status, out, errOut := urnic(t, nil, tc.args...)
		if out != "" {
			t.Errorf("%v: %q is on stdout", tc.args, out)
		}
		wantError(t, tc.args, status, errOut, tc.want)
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"demo", "--help"}, {"devinfo", "--help"}, {"rping", "--help"}, {"dissect", "--help"}, {"run", "--help"}, {"sysfs", "--help"}, {"rpc", "--help"}, {"rpc", "call", "--help"}, {"rpc", "info", "--help"}, {"rx", "--help"}, {"rx", "debug", "--help"}, {"rx", "call", "--help"}, {"rx", "perf", "--help"}, {"rx", "perf", "server", "--help"}, {"rx", "perf", "client", "--help"}, {"rdp", "--help"}, {"rdp", "send", "--help"}, {"rdp", "recv", "--help"}, {"rdp", "cat", "--help"}, {"rdp", "ping", "--help"}, {"rdp", "status", "--help"}, {"version", "--help"}} {
		status, out, _ := urnic(t, nil, args...)
		if status != 0 || !strings.Contains(out, "Examples:\n  urnic ") {
			t.Errorf("%v: status %d\n%s", args, status, out)
		}
	}
	_, out, _ := urnic(t, nil, "dissect", "--help")
	if !strings.Contains(out, "docs/json.md") {
		t.Error("the help of dissect does not say where the JSON is described")
	}
}

func TestHelpHasAnExampleOfEachCommand(t *testing.T) {
	_, out, _ := urnic(t, nil, "help")
	for _, cmd := range newRootCommand().Commands() {
		if !cmd.Hidden && !strings.Contains(out, "\n  urnic "+cmd.Name()) {
			t.Errorf("no example of %s in\n%s", cmd.Name(), out)
		}
	}
}

func TestVersion(t *testing.T) {
	status, out, _ := urnic(t, nil, "version")
	if status != 0 || !strings.HasPrefix(out, "urnic ") || strings.Count(out, "\n") != 1 {
		t.Errorf("status %d, %q", status, out)
	}
	words := strings.Fields(out)
	if len(words) < 3 || words[1] != version.Number || words[len(words)-1] != runtime.Version() {
		t.Errorf("%q is not the version of urnic, a revision and the version of Go", out)
	}
	if flag := ok(t, "--version"); flag != out {
		t.Errorf("--version prints %q, and version %q", flag, out)
	}
}

func TestHelpOfWhatIsNoCommandFails(t *testing.T) {
	for _, args := range [][]string{{"help", "nonsense"}, {"help", "perf", "nonsense"}, {"help", "devinfo", "nonsense"}} {
		status, out, errOut := urnic(t, nil, args...)
		if out != "" {
			t.Errorf("%v: %q is on stdout", args, out)
		}
		wantError(t, args, status, errOut, "there is no command \""+strings.Join(args[1:], " ")+"\": `urnic help` lists them")
	}
	if got, want := ok(t, "help", "perf", "client"), ok(t, "perf", "client", "--help"); got != want {
		t.Errorf("help perf client prints\n%s\nand perf client --help\n%s", got, want)
	}
	if got, want := ok(t, "help"), ok(t, "--help"); got != want {
		t.Errorf("help prints\n%s\nand --help\n%s", got, want)
	}
}
