package cm

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Why a request is answered no more.
var (
	ErrAnswered   = errors.New("it has been answered already, or dropped with its device")
	ErrUnanswered = errors.New("it was not answered in time: see Config.AnswerTimeout")
)

// A Peer is who has sent a request, and waits for the answer.
type Peer interface {
	// Watch waits until the peer waits no longer, and returns why; nil when the context ends
	// first. Look is Watch that does not wait.
	Watch(ctx context.Context) error
	Look() error
}

// atOnce is how long a request is not watched: most are answered before, and then
// cost no goroutine.
const atOnce = time.Millisecond

// A Pending is a request that waits for its answer. It is answered once, or dropped: when its
// peer closes the connection, or when there is no answer in time.
type Pending struct {
	peer     Peer
	drop     func(why error)
	detach   func() bool     // from the context of Begin
	watcher  *time.Timer     // starts watch
	deadline time.Time       // of the answer
	watching context.Context // of watch
	unwatch  func()
	watched  chan struct{} // closed when watch is over

	mu   sync.Mutex
	over bool  // it is being answered, or was dropped
	gone error // why it was dropped, if it was; set before watched is closed
}

// Begin begins the time in which the request can be answered. It has end called when the
// context ends, and drop when the request is dropped, unless by Answer, which returns why.
func (p *Pending) Begin(ctx context.Context, peer Peer, within time.Duration, end func(), drop func(why error)) {
	p.peer, p.drop, p.watched, p.deadline = peer, drop, make(chan struct{}), time.Now().Add(within)
	p.watching, p.unwatch = context.WithCancel(context.Background())
	p.mu.Lock() // end looks for detach
	defer p.mu.Unlock()
	p.detach = context.AfterFunc(ctx, end)
	p.watcher = time.AfterFunc(min(atOnce, within), p.watch) // dropping or answering the request waits for it
}

// watch drops a request whose peer closes the connection, or that is not
// answered in time.
func (p *Pending) watch() {
	ctx, cancel := context.WithDeadline(p.watching, p.deadline)
	gone := p.peer.Watch(ctx)
	cancel()
	p.mu.Lock()
	p.gone = gone
	if p.gone == nil && !p.over {
		p.gone = ErrUnanswered
	}
	answered := p.over
	if !answered {
		p.over = true
		p.detach()
	}
	p.mu.Unlock()
	close(p.watched)
	if !answered {
		p.drop(p.gone)
	}
}

// Over reports whether the request can no longer be answered. It looks at the
// connection itself, if nothing watches that yet.
func (p *Pending) Over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || !p.watcher.Stop() {
		return p.over
	}
	if p.gone = p.peer.Look(); p.gone == nil {
		p.watcher.Reset(atOnce)
		return false
	}
	p.over = true
	p.detach()
	go p.drop(p.gone) // which waits for the network
	return true
}

// Answer makes sure that a request is answered once, and only while the peer still waits. If
// it returns nil, the caller answers. Otherwise it returns why the request can't be
// answered, and whether it has found that just now, so that the caller must drop the
// request.
func (p *Pending) Answer() (now bool, err error) {
	p.mu.Lock()
	if p.over {
		defer p.mu.Unlock()
		if p.gone != nil {
			return false, p.gone
		}
		return false, ErrAnswered
	}
	p.over = true
	p.detach()
	p.mu.Unlock()
	p.unwatch()
	if !p.watcher.Stop() { // watch has begun
		<-p.watched
	}
	if p.gone == nil { // nothing else changes it now
		gone := p.peer.Look()
		p.mu.Lock()
		p.gone = gone
		p.mu.Unlock()
	}
	return p.gone != nil, p.gone
}
