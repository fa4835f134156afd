//go:build linux

package dropin

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// beyondIWARP returns what InfiniBand has and iWARP hardware has not.
func beyondIWARP(a, b *end) map[string]*SendWR {
	sink := a.register(a.mem[:64], accessLocalWrite)
	return map[string]*SendWR{
		immediateData: send(wrSendImm, 1, a.sge(0, 8)),
		atomics:       send(wrFetchAdd, 1, a.sge(0, 8)).toward(b, 0),
		readSink:      send(wrRead, 1, SGE{Addr: sink.Addr, Length: 8, LKey: sink.STag}).toward(b, 0),
		readSinks:     send(wrRead, 1, a.sge(0, 8), a.sge(8, 8)).toward(b, 0),
	}
}

// What is beyond iWARP works, and each is warned about once.
func TestPermissive(t *testing.T) {
	l := newLab(t, "URNIC_LOG=warning")
	a, b := l.pair()
	b.recv(1, b.sge(0, 100))
	b.recv(2, b.sge(0, 100))
	for what, wr := range beyondIWARP(a, b) {
		for range 2 {
			a.post(wr)
			a.want(1, wcSuccess)
		}
		if n := strings.Count(l.said.String(), "urnic: warning: "+what+"\n"); n != 1 || !strings.Contains(what, "RFC ") {
			t.Errorf("%q is warned about %d times:\n%s", what, n, l.said)
		}
	}
	silent := newLab(t)
	a, b = silent.pair()
	for _, wr := range beyondIWARP(a, b) {
		b.recv(1, b.sge(0, 100))
		a.post(wr)
		a.want(1, wcSuccess)
	}
	if s := silent.said.String(); s != "" {
		t.Errorf("by default it says\n%s", s)
	}
}

func TestStrict(t *testing.T) {
	l := newLab(t, "URNIC_STRICT=1", "URNIC_LOG=info")
	a, b := l.pair()
	for what, wr := range beyondIWARP(a, b) {
		l.want(what, l.QPPostSend(a.qp, wr, nil), unix.EOPNOTSUPP)
		if !strings.Contains(l.said.String(), what) {
			t.Errorf("the log does not say %q:\n%s", what, l.said)
		}
	}
	a.post(send(wrRead, 1, a.sge(0, 8)).toward(b, 0))
	a.want(1, wcSuccess)
	a.post(send(wrSend, 2)) // which finds no receive (RFC 5041 §7.1)
	l.until("the end", func() bool { return a.state() == qpsErr })
}

// A message waits for a receive, as InfiniBand's does.
func TestMessageWaitsForAReceive(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	a.post(send(wrSend, 1, a.sge(0, 8)))
	a.want(1, wcSuccess)
	b.none()
	b.recv(2, b.sge(0, 8))
	b.want(2, wcSuccess)
}

func TestSettings(t *testing.T) {
	for _, good := range []string{"URNIC_LOG=", "URNIC_LOG=debug", "URNIC_STRICT=", "URNIC_STRICT=0", "URNIC_CRC=", "URNIC_CRC=off", "URNIC_CRC=prefer", "URNIC_TRANSPORT=iwarp", "URNIC_TRANSPORT=", "URNIC_RENDEZVOUS_PORT=", "URNIC_RENDEZVOUS_PORT=64513", "URNIC_RENDEZVOUS=", "URNIC_RENDEZVOUS=off", "URNIC_RENDEZVOUS=192.0.2.1", "URNIC_RENDEZVOUS=fe80::1%eth0", "OTHER=x", "URNIC_ENGINE=x", "nothing"} {
		if _, err := parseSettings([]string{good}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"URNIC_LOG=loud", "URNIC_STRICT=yes", "URNIC_CRC=no", "URNIC_TRANSPORT=ib", "URNIC_RENDEZVOUS_PORT=0", "URNIC_RENDEZVOUS_PORT=64514", "URNIC_RENDEZVOUS_PORT=x", "URNIC_RENDEZVOUS=on", "URNIC_RENDEZVOUS=ff02::1"} {
		name, value, _ := strings.Cut(bad, "=")
		if _, err := parseSettings([]string{bad}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", bad, err)
		}
		if e, err := Open([]string{bad}, nil); err == nil {
			t.Errorf("%s: it opens", bad)
			_ = e.Close()
		}
	}
	s, err := parseSettings([]string{"URNIC_PCAP=a%p.pcapng", "URNIC_RENDEZVOUS_PORT=23000", "URNIC_TRANSPORT=ethernet"})
	if err != nil || s.port != 23000 || !s.ethernet || s.pcap == "a%p.pcapng" || !strings.HasPrefix(s.pcap, "a") || s.log != logError {
		t.Errorf("%+v, %v", s, err)
	}
}
