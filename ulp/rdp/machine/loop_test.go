package machine

import (
	"runtime"
	"testing"
	"time"
)

// A loop is two endpoints with a connection that is open, and nothing between them.
type loop struct {
	t    testing.TB
	a, b loopEnd
	now  Time
	buf  []byte
	late [][]byte // memory for segments that are overtaken
}

type loopEnd struct {
	*Machine
	c    *Conn
	path Path
}

func newLoop(t testing.TB, pa Params) *loop {
	l := &loop{t: t, buf: make([]byte, 0, MaxPacket)}
	for i, e := range []*loopEnd{&l.a, &l.b} {
		m, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		e.Machine, e.path = m, pathTo(1-i)
	}
	listener, err := l.b.Listen(ListenConfig{Port: 5, Params: pa})
	if err != nil {
		t.Fatal(err)
	}
	if l.a.c, err = l.a.Open(0, OpenConfig{Path: l.a.path, Remote: 5, Params: pa}); err != nil {
		t.Fatal(err)
	}
	l.exchange(false)
	if l.b.c = listener.Accept(); l.b.c == nil {
		t.Fatal("there is no connection")
	}
	return l
}

// exchange passes segments and reads messages until there are no more; with reorder, one segment overtakes
// another.
func (l *loop) exchange(reorder bool) {
	for busy := true; busy; {
		busy = false
		for _, d := range [2][2]*loopEnd{{&l.a, &l.b}, {&l.b, &l.a}} {
			from, to := d[0], d[1]
			var first []byte
			for i := 0; ; i++ {
				segment, _, ok := from.Pull(l.now, l.buf)
				if !ok {
					break
				}
				busy = true
				if i == 0 && reorder {
					if len(l.late) == 0 {
						l.late = append(l.late, make([]byte, 0, MaxPacket))
					}
					first = append(l.late[0][:0], segment...)
					continue
				}
				to.Receive(l.now, to.path, segment)
			}
			if first != nil {
				to.Receive(l.now, to.path, first)
			}
			from.Events()
			to.Events()
			for to.c != nil {
				msg, err := to.c.Receive()
				if err != nil {
					break
				}
				to.Free(msg.Data)
			}
		}
		if at, ok := l.a.Deadline(); !busy && ok && at < l.now+20*time.Millisecond {
			l.now = at
			l.a.Advance(at)
			busy = true
		}
		if at, ok := l.b.Deadline(); !busy && ok && at < l.now+20*time.Millisecond {
			l.now = at
			l.b.Advance(at)
			busy = true
		}
		l.now += time.Microsecond
	}
}

// inUse returns how many bytes of memory f leaves in use.
func inUse(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
}

func BenchmarkMessages(b *testing.B) {
	for _, bm := range []struct {
		name    string
		size    int
		reorder bool
	}{{"100", 100, false}, {"1400", 1400, false}, {"60000", 60_000, false}, {"1400reorder", 1400, true}} {
		b.Run(bm.name, func(b *testing.B) {
			l := newLoop(b, Params{Window: 64, MaxSegment: 65_535})
			data := make([]byte, bm.size)
			b.SetBytes(int64(bm.size))
			b.ReportAllocs()
			for n := 0; n < b.N; n += 32 {
				for range 32 {
					if err := l.a.c.Send(l.now, data); err != nil {
						b.Fatal(err)
					}
				}
				l.exchange(bm.reorder)
			}
		})
	}
}
