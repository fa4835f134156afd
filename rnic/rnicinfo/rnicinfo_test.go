package rnicinfo

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"urnic/internal/host/infosock"
	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// gather asks in the user's directory, and wants so many answers, all with a report.
func gather(t *testing.T, want int) []Answer {
	t.Helper()
	answers, skipped, err := Gather(t.Context(), "", time.Second)
	if err != nil || skipped != 0 || len(answers) != want {
		t.Fatalf("%d answers, %d skipped, %v; want %d", len(answers), skipped, err, want)
	}
	for _, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	return answers
}

// A device is found while it is served, with what it counts and the objects that are shown and not closed.
func TestDevicesAreFoundWhileTheyAreServed(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	gather(t, 0)
	p := rnictest.Connect(t)
	s, err := Serve(p.A.Device, "a\x1b program", "")
	if err != nil {
		t.Fatal(err)
	}
	mr, err := p.A.PD.Register(make([]byte, 100), rnic.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	s.Show(p.A.QP, mr, p.A.QP, nil)
	var wcs [4]rnic.WC
	if err := p.A.QP.PostSend(rnic.SendWR{Op: rnic.OpWrite}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.A.QP.Attr().SendCQ.Wait(t.Context(), wcs[:]); err != nil {
		t.Fatal(err)
	}
	r := gather(t, 1)[0].Report
	d := r.Device
	if r.PID != os.Getpid() || r.Command != "a\x1b program" || d.Connected+d.Accepted != 1 || d.Held.QPs != 1 {
		t.Errorf("%+v", r)
	}
	if len(d.QPs) != 1 || d.QPs[0].State != "RTS" || d.QPs[0].Sent.Messages != 1 || d.QPs[0].Remote == "" || d.QPs[0].Outstanding != nil {
		t.Errorf("queue pairs %+v", d.QPs)
	}
	if len(d.MRs) != 1 || d.MRs[0].Length != 100 || d.MRs[0].STag != mr.STag().String() {
		t.Errorf("regions %+v", d.MRs)
	}
	if len(d.CQs) == 0 || d.CQs[0].QPs != 1 || d.CQs[0].Entries == 0 {
		t.Errorf("completion queues %+v", d.CQs)
	}
	if err := errors.Join(p.A.QP.Close(), mr.Close()); err != nil {
		t.Error(err)
	}
	if d := gather(t, 1)[0].Report.Device; len(d.QPs) != 0 || len(d.MRs) != 0 || len(d.CQs) != 0 {
		t.Errorf("closed objects are listed: %+v", d)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	gather(t, 0)
}

// The server keeps no object alive.
func TestObjectsThatNobodyHasAreForgotten(t *testing.T) {
	p := rnictest.Connect(t)
	s := &Server{device: p.A.Device}
	collected := make(chan struct{})
	func() {
		q := new(rnic.QP)
		runtime.AddCleanup(q, func(struct{}) { close(collected) }, struct{}{})
		s.Show(q)
	}()
	runtime.GC()
	select {
	case <-collected:
	case <-time.After(time.Minute):
		t.Fatal("a queue pair is kept")
	}
	if s.describe(); len(s.qps) != 0 {
		t.Errorf("%d queue pairs", len(s.qps))
	}
}

// A process that hangs, one that talks nonsense and one that never ends cost the time of one, and others answer.
func TestHostileProcessesDelayNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "urnic")
	p := rnictest.Connect(t)
	s, err := Serve(p.A.Device, "good", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list := `{"version":1,"device":{"qps":[` + strings.Repeat(`{},`, 3000) + `{}]}}`
	says := []string{"", "nonsense", `{"version":2}`, list, `{"version":1,"command":"` + strings.Repeat("x", mostBytes) + `"}`, "hangs", "hangs", "hangs"}
	for i, text := range says {
		l, err := net.Listen("unix", filepath.Join(dir, "rnic-1-"+string(rune('a'+i))+".sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if text == "hangs" { // the system accepts for it
			continue
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte(text))
				c.Close()
			}
		}()
	}
	const patience = 3 * time.Second // in which the one that is well answers on a slow machine too
	began := time.Now()
	answers, _, err := Gather(t.Context(), dir, patience)
	if took := time.Since(began); err != nil || took > 3*patience {
		t.Errorf("%v, after %v", err, took)
	}
	good := 0
	for _, a := range answers {
		if a.Err == nil {
			good++
			if n := len(a.Report.Device.QPs); a.Report.Command != "good" && n != MostListed {
				t.Errorf("%d queue pairs are taken", n)
			}
		}
	}
	if len(answers) != 1+len(says) || good != 2 {
		t.Errorf("%d answers, %d of them reports", len(answers), good)
	}
}

// What processes left behind goes, unless it is so young that its process may be about to listen.
func TestStaleSocketsAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "urnic")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rnic-1-0.sock", "rnic-2-0.sock"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	file := filepath.Join(dir, "rnic-3-0.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	for _, name := range []string{"rnic-1-0.sock", "rnic-3-0.sock"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	answers, _, err := Gather(t.Context(), dir, time.Second)
	if err != nil || len(answers) != 1 || answers[0].Err == nil {
		t.Errorf("%+v, %v", answers, err)
	}
	paths, err := infosock.List(dir, kind)
	if err != nil || strings.Join(paths, " ") != filepath.Join(dir, "rnic-2-0.sock")+" "+file {
		t.Errorf("%q are left, %v", paths, err)
	}
}

// A directory that others can enter is not used, neither by readers nor by servers.
func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	p := rnictest.Connect(t)
	s, err := Serve(p.A.Device, "", dir+"/urnic")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(dir + "/urnic"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(dir+"/urnic", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Gather(t.Context(), dir+"/urnic", time.Second); err == nil || !strings.Contains(err.Error(), "mode 0700") {
		t.Errorf("it is read: %v", err)
	}
	if s, err := Serve(p.A.Device, "", dir+"/urnic"); err == nil {
		s.Close()
		t.Error("it is served in")
	}
}
