package rpcrdma

import (
	"context"
	"slices"
	"sync"
)

// A budget bounds the memory that peers make a Server hold: that of Read chunks, and that
// of replies until their peers have taken them, what the program has read for them and what
// it has borrowed, also if that was overwritten meanwhile. Further calls wait before
// they are carried out.
type budget struct {
	most  int // bytes, of all connections
	group int // of those of one account
	each  int // of one connection

	mu       sync.Mutex
	used     int
	accounts map[string]*debtor
	slow     []string // accounts that are marked, the oldest first
	queue    []*debt  // those for which calls wait
}

// mostSlow is how many accounts are marked as slow at most.
const mostSlow = 1024

// A debtor is an account: all the connections that count for it.
type debtor struct {
	name        string
	used        int
	connections int

	// slow marks one that has not taken a reply when its connection ended. It has one
	// call at a time until it has taken one, over whichever connection: to connect
	// again does not let it stall again as much.
	slow bool
}

// A debt is what the replies of one connection hold.
type debt struct {
	b       *budget
	who     *debtor
	used    int
	waiting []*want
}

// A want is a call that waits.
type want struct {
	n    int
	got  chan struct{}
	slow bool // of the debtor, when it was granted
}

func newBudget(most, each int) *budget {
	return &budget{most: most, group: max(most/4, each), each: each, accounts: make(map[string]*debtor)}
}

// join begins the debt of a connection.
func (b *budget) join(account string) *debt {
	b.mu.Lock()
	defer b.mu.Unlock()
	who := b.accounts[account]
	if who == nil {
		who = &debtor{name: account}
		b.accounts[account] = who
	}
	who.connections++
	return &debt{b: b, who: who}
}

// leave ends the debt of a connection, which holds nothing any more.
func (d *debt) leave() {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.who.connections--
	d.b.forget(d.who)
}

// forget drops an account of which nothing needs to be known. The caller holds mu.
func (b *budget) forget(who *debtor) {
	if who.connections == 0 && !who.slow {
		delete(b.accounts, who.name)
	}
}

// may reports whether a connection may hold n more bytes. The caller holds mu.
func (d *debt) may(n int) bool {
	switch {
	case d.who.used == 0: // each account can have one call in any case
		return true
	case d.who.slow, d.used > 0 && d.used+n > d.b.each, d.who.used+n > d.b.group:
		return false
	}
	return d.b.used+n <= d.b.most
}

// take waits until the connection may hold n more bytes. It reports whether its account is
// marked as slow, or returns the cause of the context's end.
func (d *debt) take(ctx context.Context, n int) (slow bool, err error) {
	d.b.mu.Lock()
	if len(d.waiting) == 0 && d.may(n) {
		d.add(n)
		slow = d.who.slow
		d.b.mu.Unlock()
		return slow, nil
	}
	w := &want{n: n, got: make(chan struct{})}
	if len(d.waiting) == 0 {
		d.b.queue = append(d.b.queue, d)
	}
	d.waiting = append(d.waiting, w)
	d.b.mu.Unlock()
	select {
	case <-w.got:
		return w.slow, nil
	case <-ctx.Done():
	}
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	i := slices.Index(d.waiting, w)
	if i < 0 { // it was granted at the same time
		return w.slow, nil
	}
	d.waiting = slices.Delete(d.waiting, i, i+1)
	d.b.serve() // those behind may want less
	return false, context.Cause(ctx)
}

// add counts n more bytes, or less. The caller holds mu.
func (d *debt) add(n int) {
	d.used += n
	d.who.used += n
	d.b.used += n
}

// What became of a reply.
type outcome uint8

const (
	unsent outcome = iota // there was none, or it needed nobody to take it
	taken                 // the peer has taken it
	cut                   // the connection has ended before
)

// give gives n bytes back.
func (d *debt) give(n int, o outcome) {
	b := d.b
	b.mu.Lock()
	defer b.mu.Unlock()
	d.add(-n)
	switch {
	case o == taken && d.who.slow:
		d.who.slow = false
		b.slow = slices.DeleteFunc(b.slow, func(name string) bool { return name == d.who.name })
	case o == cut && !d.who.slow:
		d.who.slow = true
		b.slow = append(b.slow, d.who.name)
		if len(b.slow) > mostSlow {
			oldest := b.accounts[b.slow[0]]
			b.slow = slices.Delete(b.slow, 0, 1)
			oldest.slow = false
			b.forget(oldest)
		}
	}
	b.serve()
}

// serve grants what can be granted, to one connection after the other. The caller holds
// mu.
func (b *budget) serve() {
	b.queue = slices.DeleteFunc(b.queue, func(d *debt) bool {
		for len(d.waiting) > 0 && d.may(d.waiting[0].n) {
			w := d.waiting[0]
			d.waiting = slices.Delete(d.waiting, 0, 1)
			d.add(w.n)
			w.slow = d.who.slow
			close(w.got)
		}
		return len(d.waiting) == 0
	})
}
