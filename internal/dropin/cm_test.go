//go:build linux

package dropin

import (
	"testing"
)

func TestConnectionOverEitherFamily(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			l := newCMLab(t)
			a, b := l.port(), l.port()
			from, to, listener := l.connect(a, b, address)
			exchange(&from, &to)
			fromLocal, fromPeer := l.addrs(from.id)
			toLocal, toPeer := l.addrs(to.id)
			if fromLocal != toPeer || fromPeer != toLocal || fromPeer != l.local(listener) {
				t.Errorf("from %v to %v; the peer says from %v to %v; the listener %v", fromLocal, fromPeer, toPeer, toLocal, l.local(listener))
			}
			from.recv(11)
			to.recv(12)
			l.must("disconnect", l.IDDisconnect(from.id))
			a.wantEvent(cmDisconnected, 1)
			b.wantEvent(cmDisconnected, 2)
			from.completion(11, wcFlushed)
			to.completion(12, wcFlushed)
			l.want("disconnect again", l.IDDisconnect(from.id), ok)
			l.want("disconnect the other end", l.IDDisconnect(to.id), ok)
			a.none()
			b.none()
		})
	}
}
