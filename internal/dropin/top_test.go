//go:build linux

package dropin

import (
	"os"
	"testing"
	"time"

	"urnic/rnic/rnicinfo"
)

// reported returns the report of an engine, once it is served.
func reported(t *testing.T, l *lab, dir string) *rnicinfo.Report {
	t.Helper()
	l.reporter.wg.Wait() // until it has begun to serve
	answers, _, err := rnicinfo.Gather(t.Context(), dir, patience)
	if err != nil || len(answers) != 1 || answers[0].Err != nil {
		t.Fatalf("the engine is not served: %+v, %v", answers, err)
	}
	return answers[0].Report
}

// An engine reports what its program has: objects by the program's states, what is outstanding and what is polled.
func TestEnginesReportWhatTheyHave(t *testing.T) {
	dir := t.TempDir() + "/urnic"
	l := newLab(t, "URNIC_TOP="+dir)
	a := l.end()
	r := reported(t, l, dir)
	d := r.Device
	if r.PID != os.Getpid() || r.Command == "" || d.Name != "urnic0" || len(d.QPs) != 1 || len(d.CQs) != 1 || len(d.MRs) != 1 {
		t.Fatalf("%+v", r)
	}
	if q := d.QPs[0]; q.State != "INIT" || q.Num != a.init.QPN || *q.Outstanding != 0 || *q.Unpolled != 0 || q.Sent == nil {
		t.Errorf("%+v", q)
	}
	if c := d.CQs[0]; c.QPs != 1 || *c.Polled != 0 {
		t.Errorf("%+v", c)
	}
	a.to(qpsErr)
	if q := reported(t, l, dir).Device.QPs[0]; q.State != "ERR" {
		t.Errorf("%+v", q)
	}
	l.must("destroy", l.QPDestroy(a.qp))
	if d := reported(t, l, dir).Device; len(d.QPs) != 0 {
		t.Errorf("%+v", d.QPs)
	}
	l.Leave()
	if answers, _, err := rnicinfo.Gather(t.Context(), dir, time.Second); err != nil || len(answers) != 0 {
		t.Errorf("after the process has left: %+v, %v", answers, err)
	}
}

func TestReportsThatCanNotBeServedHarmNothing(t *testing.T) {
	l := newLab(t, "URNIC_TOP=/proc/none", "URNIC_LOG=info")
	l.reporter.wg.Wait()
	if l.said.String() == "" {
		t.Error("nobody is told")
	}
	for _, value := range []string{"", "off"} {
		l := newLab(t, "URNIC_TOP="+value)
		l.reporter.wg.Wait()
		if l.reporter.server != nil {
			t.Errorf("%q: it is served", value)
		}
	}
	if _, err := Open([]string{"URNIC_TOP=here"}, l.said); err == nil {
		t.Error("a directory that depends on where the program is")
	}
}
