// Package dirlist keeps the names of a directory in the order in which they came, so that a
// listing can continue wherever it was, whatever was added or removed meanwhile.
package dirlist

import (
	"maps"
	"slices"
)

const (
	firstCookie = 3  // smaller ones mean something else in NFS
	minDead     = 64 // fewer dead entries than this are not worth tidying
)

// A List is a directory's names, each with something that it names. It is not safe for
// use by several goroutines that change it.
type List[T any] struct {
	names map[string]*Entry[T]
	list  []*Entry[T] // by increasing cookies
	dead  int         // of list
	next  uint64
	most  int // names that the map had since it was made
}

// An Entry is a name. What it names may be replaced.
type Entry[T any] struct {
	Name   string
	Cookie uint64
	Item   T
	gone   bool
}

// New makes an empty list.
func New[T any]() *List[T] {
	return &List[T]{names: make(map[string]*Entry[T]), next: firstCookie}
}

// Len returns how many names there are.
func (l *List[T]) Len() int { return len(l.names) }

// Get returns the entry of a name, or nil.
func (l *List[T]) Get(name string) *Entry[T] { return l.names[name] }

// Add adds a name that is not there, at the end.
func (l *List[T]) Add(name string, item T) {
	e := &Entry[T]{Name: name, Cookie: l.next, Item: item}
	l.next++
	l.names[name] = e
	l.list = append(l.list, e)
	l.most = max(l.most, len(l.names))
}

// Remove removes a name, if it is there. Its cookie stays a place to continue from.
func (l *List[T]) Remove(name string) {
	e := l.names[name]
	if e == nil {
		return
	}
	delete(l.names, name)
	*e = Entry[T]{Cookie: e.Cookie, gone: true} // what it named may be large
	if l.dead++; l.dead >= minDead && l.dead > len(l.list)/2 {
		list := make([]*Entry[T], 0, len(l.names)+len(l.names)/4)
		for _, e := range l.list {
			if !e.gone {
				list = append(list, e)
			}
		}
		l.list, l.dead = list, 0
	}
	if l.most >= minDead && len(l.names) < l.most/4 { // a map keeps the memory that it once needed
		l.names, l.most = maps.Clone(l.names), len(l.names)
	}
}

// After copies entries behind that with a cookie, 0 for the first, to some, and returns how
// many. It returns false if no entry ever had that cookie.
func (l *List[T]) After(cookie uint64, some []Entry[T]) (int, bool) {
	if cookie >= l.next {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(l.list, cookie+1, func(e *Entry[T], c uint64) int {
		switch {
		case e.Cookie < c:
			return -1
		case e.Cookie > c:
			return 1
		}
		return 0
	})
	n := 0
	for ; i < len(l.list) && n < len(some); i++ {
		if !l.list[i].gone {
			some[n] = *l.list[i]
			n++
		}
	}
	return n, true
}
