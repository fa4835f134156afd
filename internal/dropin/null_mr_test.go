//go:build linux

package dropin

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// nullMR returns a null region of an end.
func (e *end) nullMR() (r Region) {
	e.lab.Helper()
	e.lab.must("null region", e.lab.NullMRAlloc(e.pd, &r))
	return r
}

// Datagrams are sent from null regions, and dropped there, too: by a queue pair, and by an SRQ.
func TestNullRegionsOfDatagrams(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.udEnd()
	var srq Handle
	b, c := l.udEnd(), l.udEnd(func(e *end) { srq = e.sharedRecv(2); e.init.SRQ = srq })
	from := a.nullMR()
	fill(a.mem, 1)
	for _, to := range []*end{b, c} {
		into := to.nullMR()
		fill(to.mem, 2)
		want := append(make([]byte, 20), a.mem[:30]...)
		sgl := []SGE{{Addr: 77, Length: 40, LKey: into.STag}, to.sge(0, 100)}
		if to == c {
			c.recvShared(srq, 1, sgl...)
		} else {
			b.recv(1, sgl...)
		}
		a.post(send(wrSend, 1, SGE{Addr: 1 << 60, Length: 20, LKey: from.STag}, a.sge(0, 30)).at(a.ah(AHAttr{}), to.init.QPN, testKey))
		a.want(1, wcSuccess)
		to.want(1, wcSuccess)
		if !bytes.Equal(to.mem[:50], want) { // the GRH is dropped
			t.Errorf("%v", to.mem[:50])
		}
		l.must("dereg", l.MRDereg(Handle(into.MR)))
		l.want("dereg again", l.MRDereg(Handle(into.MR)), unix.EINVAL)
	}
	l.want("rereg", l.MRRereg(Handle(from.MR), reregAccess, 0, &Region{Access: accessLocalWrite}), unix.EINVAL)
	l.must("dereg", l.MRDereg(Handle(from.MR)))
	if n := l.null.n.Load(); n != 0 {
		t.Errorf("%d null regions are left", n)
	}
	l.want("no PD", l.NullMRAlloc(1<<31, &from), unix.EINVAL)
}
