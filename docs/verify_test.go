package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A verified is a checkout in which make verify runs, with programs that do nothing in place of make, go and those of
// Debian. The file "fails" has the targets of make that fail, and "flaky" those that report a flaky test.
type verified struct {
	t   *testing.T
	dir string
}

func newVerified(t *testing.T) *verified {
	t.Helper()
	v := &verified{t, t.TempDir()}
	for _, name := range []string{".ci/verify", ".ci/steps.sh"} {
		v.write(name, read(t, name))
	}
	v.write(".gitignore", "/artifacts/\n/programs/\n/bin/\n/fails\n/flaky\n/ran\n")
	v.write("file", "one\n")
	v.write("internal/test/interop/siw_test.go", "package interop\n\nfunc TestX(t *testing.T) {}\n")
	for name, script := range map[string]string{
		"programs/make": `echo "$1" >>ran
if grep -qsx "$1" flaky; then mkdir -p artifacts/test && echo "FLAKY x" >"artifacts/test/$1-flaky.txt"; fi
! grep -qsx "$1" fails`,
		"programs/go":         "true",
		"programs/dpkg-query": "echo installed",
		"bin/prove":           "true",
	} {
		v.write(name, "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(filepath.Join(v.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v.git("init", "-q")
	v.commit()
	return v
}

func (v *verified) write(name, text string) {
	v.t.Helper()
	file := filepath.Join(v.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

func (v *verified) git(args ...string) {
	v.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = v.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		v.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (v *verified) commit() {
	v.t.Helper()
	v.git("add", "-A")
	v.git("commit", "-q", "--allow-empty", "-m", "x")
}

// verify runs the steps, and returns what it printed, which targets of make it ran, and whether it succeeded.
func (v *verified) verify(steps ...string) (out, ran string, ok bool) {
	v.t.Helper()
	v.write("ran", "")
	cmd := exec.CommandContext(v.t.Context(), "bash", append([]string{".ci/verify"}, steps...)...)
	cmd.Dir = v.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(v.dir, "programs")+":"+os.Getenv("PATH"))
	b, err := cmd.CombinedOutput()
	targets, readErr := os.ReadFile(filepath.Join(v.dir, "ran"))
	if readErr != nil {
		v.t.Fatal(readErr)
	}
	return string(b), strings.Join(strings.Fields(string(targets)), " "), err == nil
}

// record returns how a step went, and whether the commit is that of the sources, by the record.
func (v *verified) record(step string) (how string, clean bool) {
	v.t.Helper()
	b, err := os.ReadFile(filepath.Join(v.dir, ".ci/verified"))
	if err != nil {
		v.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + step + ` +(\w+) +\d+ +[0-9a-f]+(\+?) +\d{4}-\d\d-\d\d$`).FindStringSubmatch(string(b))
	if m == nil {
		return "", false
	}
	return m[1], m[2] == ""
}

// Steps that have passed for the sources are left out, whether the record is committed or not; those that failed, and all
// of other sources, run again.
func TestVerifyContinuesWhereItEnded(t *testing.T) {
	v := newVerified(t)
	v.write("fails", "cross\n")
	v.write("flaky", "conform\n")
	out, ran, ok := v.verify()
	if ok || !strings.Contains(ran, "race-all") || !strings.Contains(ran, "bench") {
		t.Fatalf("ran %q; succeeded: %t\n%s", ran, ok, out)
	}
	for step, want := range map[string]string{"race-all": "passed", "conform": "flaky", "cross": "failed", "bench": "passed"} {
		if how, clean := v.record(step); how != want || !clean {
			t.Errorf("%s: %q, of what is committed: %t; want %s", step, how, clean, want)
		}
	}
	if !strings.Contains(out, "FLAKY x") {
		t.Errorf("the flaky test is not printed:\n%s", out)
	}
	for range 2 {
		if out, ran, ok := v.verify(); ran != "cross" || ok {
			t.Errorf("then it ran %q; want cross, which failed\n%s", ran, out)
		}
		v.commit() // the record
	}
	v.write("fails", "")
	if out, ran, ok := v.verify(); ran != "cross" || !ok {
		t.Errorf("at last it ran %q; want cross, which passes now\n%s", ran, out)
	}
	v.write("file", "another\n")
	if out, ran, ok := v.verify("fuzz"); ran != "fuzz" || !ok {
		t.Errorf("one step: ran %q\n%s", ran, out)
	}
	if how, clean := v.record("fuzz"); how != "passed" || clean {
		t.Errorf("with a file that is not committed: %q, of what is committed: %t", how, clean)
	}
	v.commit()
	if _, ran, ok := v.verify(); !ok || !strings.Contains(ran, "race-all") {
		t.Errorf("other sources: ran %q", ran)
	}
}

func TestVerifyRefusesStepsThatItHasNot(t *testing.T) {
	v := newVerified(t)
	if out, ran, ok := v.verify("fuzz", "nonsense"); ok || ran != "" || !strings.Contains(out, "there is no step nonsense") {
		t.Errorf("ran %q; succeeded: %t\n%s", ran, ok, out)
	}
}
