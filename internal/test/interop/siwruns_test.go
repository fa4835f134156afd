//go:build interop

package interop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// withSIW runs a test against siw, and again if it fails by one of siw's own faults (see runs). On the
// connections of the test's recording, siw is on the side given; anySide says that it is where the address
// is the guest's. The recording of a run that has failed remains under the number of that run.
func withSIW(t testing.TB, siw side, f func(t testing.TB)) {
	t.Helper()
	withSIWRevived(t, siw, func() {}, f)
}

// withSIWRevived is withSIW for what does not survive the faults, and is to be revived before the next run.
func withSIWRevived(t testing.TB, siw side, revive func(), f func(t testing.TB)) {
	t.Helper()
	n := 0
	runs(t, func(r *trial) func() *evidence {
		if n++; n > 1 {
			revive()
		}
		mark := theGuest.mark(t)
		return func() *evidence {
			e := &evidence{siw: siw, hosts: []string{guestIPv4, guestIPv6}, kernel: theGuest.since(t, mark)}
			for _, p := range r.programs {
				e.said = append(e.said, p())
			}
			kept := fmt.Sprintf("%s-run%d.pcapng", strings.TrimSuffix(recording(t), ".pcapng"), n)
			if err := os.Rename(recording(t), kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			if err := e.read(kept); err != nil {
				t.Errorf("%s: %v", kept, err)
			}
			return e
		}
	}, f)
}

// marks counts the marks of this process.
var marks atomic.Int64

// mark makes a mark in the log of the guest's kernel, which has what siw's connection manager does from
// then on.
func (g *guest) mark(t testing.TB) string {
	t.Helper()
	mark := fmt.Sprintf("urnic: mark %d", marks.Add(1))
	g.run(t, "echo 'module siw func siw_cm_work_handler +p' >/proc/dynamic_debug/control && echo '"+mark+"' >/dev/kmsg")
	return mark
}

// since returns what the guest's kernel has logged since a mark.
func (g *guest) since(t testing.TB, mark string) string {
	t.Helper()
	log := g.run(t, "dmesg")
	_, after, found := strings.Cut(log, mark+"\n")
	if !found {
		t.Logf("the guest's kernel has logged so much that %q is gone", mark)
		return log
	}
	return after
}
