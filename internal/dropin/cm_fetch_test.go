//go:build linux

package dropin

import (
	"testing"
	"time"
)

// What the peer sent before it ended the connection comes first.
func TestProgramPollsMessagesBeforeItLearnsOfTheEnd(t *testing.T) {
	l := newCMLab(t)
	l.times.fetch, l.times.act = time.Hour, 0
	a, b := l.port(), l.port()
	from, to, _ := l.connect(a, b, "127.0.0.1:0")
	to.recv(1)
	to.recv(2)
	from.send(3)
	from.completion(3, wcSuccess)
	l.must("disconnect", l.IDDisconnect(from.id))
	a.wantEvent(cmDisconnected, 1) // at once
	<-l.qps.get(to.qp).verbs.Done()
	for range 1000 { // it would be told soon
		b.none()
	}
	to.completion(1, wcSuccess)
	b.wantEvent(cmDisconnected, 2) // though nobody has polled the receive that was flushed
	to.completion(2, wcFlushed)
}

// A program that does not poll learns of the end all the same.
func TestProgramThatDoesNotPollLearnsOfTheEnd(t *testing.T) {
	l := newCMLab(t)
	l.times.fetch = time.Millisecond
	a, b := l.port(), l.port()
	from, to, _ := l.connect(a, b, "127.0.0.1:0")
	to.recv(1)
	from.send(3)
	l.must("disconnect", l.IDDisconnect(from.id))
	a.wantEvent(cmDisconnected, 1)
	b.wantEvent(cmDisconnected, 2)
}

// A program that has polled what the peer sent has time to act on it before it learns of the end, and learns of that at once
// when it ends the connection itself.
func TestProgramActsBeforeItLearnsOfTheEnd(t *testing.T) {
	l := newCMLab(t)
	l.times.act = time.Hour
	a, b := l.port(), l.port()
	from, to, _ := l.connect(a, b, "127.0.0.1:0")
	to.recv(1)
	from.send(2)
	l.must("disconnect", l.IDDisconnect(from.id))
	to.completion(1, wcSuccess)
	<-l.qps.get(to.qp).verbs.Done()
	for range 1000 { // it would be told soon
		b.none()
	}
	l.must("disconnect", l.IDDisconnect(to.id))
	b.wantEvent(cmDisconnected, 2)
}
