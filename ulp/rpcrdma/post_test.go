package rpcrdma

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"urnic/rnic"
)

// A posting notes what is posted, and waits before each time until it may.
type posting struct {
	may    chan error
	posted [][]string
}

func (p *posting) postAll(wrs ...rnic.SendWR) error {
	err := <-p.may
	var batch []string
	for _, wr := range wrs {
		batch = append(batch, string(wr.Inline))
	}
	p.posted = append(p.posted, batch)
	return err
}

// inlineOf returns a request that sends p inline.
func inlineOf(p []byte) rnic.SendWR {
	return rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: p}
}

// Those who come while somebody posts return at once, and are posted together by him: in
// their order, and as they were, though their memory has been used again.
func TestPostsTogether(t *testing.T) {
	to := &posting{may: make(chan error)}
	p := poster{postAll: to.postAll}
	var first sync.WaitGroup
	memory := []byte("one")
	first.Go(func() {
		if err := p.post(1, inlineOf(memory)); err != nil {
			t.Error(err)
		}
	})
	busy := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.posting && len(p.next.wrs) == 0
	}
	for !busy() {
		runtime.Gosched()
	}
	for _, s := range []string{"two", "three", "four"} {
		memory := []byte(s)
		if err := p.post(100, inlineOf(memory), inlineOf([]byte("and"))); err != nil {
			t.Error(err)
		}
		copy(memory, strings.Repeat("x", len(memory)))
	}
	to.may <- nil
	to.may <- nil
	first.Wait()
	if got, want := fmt.Sprint(to.posted), "[[one] [two and three and four and]]"; got != want {
		t.Errorf("posted %s, want %s", got, want)
	}
	if p.posting {
		t.Error("somebody posts still")
	}
	// What is posted next takes the memory that is there.
	var next sync.WaitGroup
	next.Go(func() {
		if err := p.post(1, inlineOf([]byte("five"))); err != nil {
			t.Error(err)
		}
	})
	to.may <- nil
	next.Wait()
	if got := to.posted[2]; !slices.Equal(got, []string{"five"}) {
		t.Errorf("posted %s", got)
	}
}

// A failure is told to who posts, and leaves what others have asked for.
func TestPostFails(t *testing.T) {
	to := &posting{may: make(chan error, 1)}
	p := poster{postAll: to.postAll}
	broken := errors.New("broken")
	to.may <- broken
	if err := p.post(2, inlineOf([]byte("one"))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	to.may <- nil
	if err := p.post(2, inlineOf([]byte("two"))); err != nil {
		t.Error(err)
	}
}

// Who has gathered half of those who have calls outstanding posts them, though somebody
// else was to; the others are posted by who was.
func TestPostsHalfAtOnce(t *testing.T) {
	to := &posting{may: make(chan error, 2)}
	to.may <- nil
	to.may <- nil
	p := poster{postAll: to.postAll, waiting: true} // somebody is about to
	for i := range 5 {
		if err := p.post(8, inlineOf([]byte{byte('a' + i)})); err != nil {
			t.Error(err)
		}
		if i == 4 {
			break
		}
		p.mu.Lock()
		if want := i < 3; p.waiting != want {
			t.Errorf("after %d, somebody is about to post: %v", i+1, p.waiting)
		}
		p.mu.Unlock()
	}
	if got, want := fmt.Sprint(to.posted), "[[a b c d] [e]]"; got != want {
		t.Errorf("posted %s, want %s", got, want)
	}
}
