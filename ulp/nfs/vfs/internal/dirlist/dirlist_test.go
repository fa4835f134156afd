package dirlist

import (
	"fmt"
	"testing"
)

// A listing goes on behind a name that is gone, and memory stays short.
func TestList(t *testing.T) {
	l := New[int]()
	for i := range 200 {
		l.Add(fmt.Sprint(i), i)
	}
	some := make([]Entry[int], 7)
	seen, cookie := 0, uint64(0)
	for {
		n, ok := l.After(cookie, some)
		if !ok {
			t.Fatalf("cookie %d is unknown", cookie)
		}
		if n == 0 {
			break
		}
		for _, e := range some[:n] {
			if e.Item != seen || e.Name != fmt.Sprint(seen) || e.Cookie < firstCookie {
				t.Fatalf("entry %d is %+v", seen, e)
			}
			seen++
			cookie = e.Cookie
			l.Remove(e.Name)
		}
	}
	if seen != 200 || l.Len() != 0 {
		t.Errorf("%d were listed, %d are left", seen, l.Len())
	}
	if _, ok := l.After(cookie+1, some); ok {
		t.Error("a cookie that was never given is known")
	}
	for range 10000 {
		l.Add("x", 0)
		l.Remove("x")
	}
	if len(l.list) > 3*minDead {
		t.Errorf("%d dead entries are kept", len(l.list))
	}
	l.Remove("none")
	if l.Get("none") != nil || l.dead != len(l.list) {
		t.Error("removing what is not there has removed something")
	}
}
