//go:build linux

package dropin

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/internal/test/leakcheck"
)

// Many connections are made, used and ended at the same time, in several ways, by
// several threads of a program on each side.
func TestManyConnectionsAtTheSameTime(t *testing.T) {
	leakcheck.Check(t)
	const threads, each = 8, 25
	l := newCMLab(t)
	server := l.port()
	listener, where := server.listen(1, "127.0.0.1:0")

	// The server answers until all clients are through; the ids of its connections
	// have their queue pairs as cookies.
	var wg, clients sync.WaitGroup
	var mu sync.Mutex
	ends := map[Handle]cmEnd{}
	done := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				var ev CMEvent
				if l.EvchNext(server.evch, &ev) != ok {
					select {
					case <-done:
						return
					default:
						_, _ = unix.Poll([]unix.PollFd{{Fd: int32(server.fd), Events: unix.POLLIN}}, 10)
						continue
					}
				}
				switch ev.Type {
				case cmConnectRequest:
					if ev.data() == "reject" {
						l.want("reject", l.IDReject(ev.NewID, []byte("no")), ok)
						l.want("destroy", l.IDDestroy(ev.NewID), ok)
						continue
					}
					e := cmEnd{port: server, id: ev.NewID, cq: l.newCQ()}
					e.qp = l.qp(e.cq)
					e.recv(1)
					mu.Lock()
					ends[e.qp] = e
					mu.Unlock()
					l.want("cookie", l.IDSetCookie(e.id, uint64(e.qp)), ok)
					if bad := l.IDAccept(e.id, param(e.qp, "")); bad != ok { // its peer has gone
						l.want("destroy", l.IDDestroy(e.id), ok)
						l.want("destroy QP", l.QPDestroy(e.qp), ok)
						mu.Lock()
						delete(ends, e.qp)
						mu.Unlock()
					}
				case cmEstablished:
				case cmDisconnected:
					mu.Lock()
					e := ends[Handle(ev.Cookie)]
					delete(ends, e.qp)
					mu.Unlock()
					l.want("destroy QP", l.QPDestroy(e.qp), ok)
					l.want("destroy", l.IDDestroy(e.id), ok)
					l.want("destroy CQ", l.CQDestroy(e.cq), ok)
				default:
					l.Errorf("event %d, status %d", ev.Type, ev.Status)
				}
			}
		})
	}
	for range threads {
		clients.Go(func() {
			p := l.port()
			for i := range uint64(each) {
				e := cmEnd{port: p, id: p.routed(i, where), cq: l.newCQ()}
				e.qp = l.qp(e.cq)
				word := ""
				if i%5 == 4 {
					word = "reject"
				}
				l.want("connect", l.IDConnect(e.id, param(e.qp, word)), ok)
				switch i % 5 {
				case 0: // as it should be
					p.wantEvent(cmEstablished, i)
					e.send(2)
					e.completion(2, wcSuccess)
					l.want("disconnect", l.IDDisconnect(e.id), ok)
					p.wantEvent(cmDisconnected, i)
				case 1: // without a word
					p.wantEvent(cmEstablished, i)
				case 2: // in haste
					l.want("disconnect", l.IDDisconnect(e.id), ok)
				case 3: // id first
				case 4:
					if ev := p.wantFailure(cmRejected, i, unix.ECONNREFUSED); ev.data() != "no" {
						l.Errorf("rejected with %q", ev.data())
					}
				}
				if i%5 != 3 {
					l.want("destroy QP", l.QPDestroy(e.qp), ok)
				}
				l.want("destroy", l.IDDestroy(e.id), ok)
				if i%5 == 3 {
					l.want("destroy QP", l.QPDestroy(e.qp), ok)
				}
				l.want("destroy CQ", l.CQDestroy(e.cq), ok)
				p.none()
			}
			l.want("destroy channel", l.EvchDestroy(p.evch), ok)
		})
	}
	clients.Wait()
	left := func() (n int) {
		l.ids.each(func(Handle, *cmID) { n++ })
		return n
	}
	waitFor(t, "the end of all connections", func() bool { return left() == 1 }) // the listener
	close(done)
	wg.Wait()
	l.must("destroy", l.IDDestroy(listener))
	if n := left(); n != 0 {
		t.Errorf("%d ids are left", n)
	}
}
