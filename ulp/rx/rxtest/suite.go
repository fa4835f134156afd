package rxtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"urnic/ulp/rx"
)

// An Opener opens two endpoints, of which the server has services. Both are closed when the
// test ends. Handlers that panic may be logged to nowhere.
type Opener func(t testing.TB, services []rx.Service) (client, server rx.Endpoint)

// patience is how long a test may take that hangs.
const patience = time.Minute

// A Test is one of the suite.
type Test struct {
	Name string
	Run  func(t *testing.T, open Opener)
}

// Tests are those of the suite.
var Tests = []Test{
	{"calls come back", testEcho},
	{"streams to the server", testPut},
	{"streams from the server", testGet},
	{"channels are four calls at once", testChannels},
	{"many callers", testConcurrency},
	{"handlers fail with codes", testCodes},
	{"a handler that panics fails its call only", testPanic},
	{"a client aborts", testClientAborts},
	{"a call is closed amid its reply", testClosedAmidReply},
	{"a context ends", testContext},
	{"a context ends while all channels are busy", testContextOfBegin},
	{"a queue is full", testQueueFull},
	{"a reply can't be read before the request is complete", testOrder},
	{"a reply may come early", testEarly},
	{"no such service", testNoService},
	{"services are upgraded", testUpgrade},
	{"rxkad at each level", testRxkad},
	{"a ticket is refused", testBadTicket},
	{"null is refused", testNoNull},
	{"shutdown waits for calls", testShutdown},
	{"shutdown ends with its context", testShutdownContext},
	{"close ends calls", testClose},
	{"a connection is closed", testConnClose},
	{"nothing moves for too long", testIdleDead},
	{"a call lasts too long", testHardDead},
}

// Run runs the suite.
func Run(t *testing.T, open Opener) {
	for _, test := range Tests {
		t.Run(test.Name, func(t *testing.T) { test.Run(t, open) })
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dial makes a connection, which is closed when the test ends.
func dial(t testing.TB, client, server rx.Endpoint, service uint16, cfg rx.DialConfig) rx.Conn {
	t.Helper()
	conn, err := client.Dial(within(t), server.Addr(), service, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// begin begins a call that is closed when the test ends.
func begin(t testing.TB, conn rx.Conn) rx.Call {
	t.Helper()
	k, err := conn.Begin(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// wantCode checks the abort code of an error.
func wantCode(t testing.TB, err error, want int32) {
	t.Helper()
	if code, ok := Code(err); !ok || code != want {
		t.Errorf("the error is %v; want the code %d", err, want)
	}
}

func testEcho(t *testing.T, open Opener) {
	client, server := open(t, Services())
	conn := dial(t, client, server, Echo, rx.DialConfig{})
	if conn.Peer() != server.Addr() || conn.Service() != Echo {
		t.Errorf("the connection is to %v, service %d", conn.Peer(), conn.Service())
	}
	for _, n := range []int{0, 1, 7, 1400, 1444, 1445, 16 << 10, 32<<10 - 16, 32 << 10, 100_000, 1 << 20} {
		got, err := exchange(within(t), conn, pattern(n))
		if err != nil || !bytes.Equal(got, pattern(n)) {
			t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
		}
	}
}

func testPut(t *testing.T, open Opener) {
	client, server := open(t, Services())
	conn := dial(t, client, server, Sink, rx.DialConfig{})
	for _, piece := range sizes {
		if err := put(within(t), conn, 3<<20+17, piece); err != nil {
			t.Errorf("pieces of %d: %v", piece, err)
		}
	}
}

func testGet(t *testing.T, open Opener) {
	client, server := open(t, Services())
	conn := dial(t, client, server, Source, rx.DialConfig{})
	for _, write := range sizes {
		for _, read := range sizes {
			if err := get(within(t), conn, 2<<20+5, write, read); err != nil {
				t.Errorf("written by %d, read by %d: %v", write, read, err)
			}
		}
	}
}

// gate is a service whose calls wait until they may continue, or fail.
type gate struct {
	came chan struct{}
	let  chan struct{}
	fail chan struct{} // calls have failed
}

func newGate() *gate {
	return &gate{came: make(chan struct{}, 100), let: make(chan struct{}), fail: make(chan struct{}, 100)}
}

func (g *gate) Serve(ctx context.Context, c rx.ServerCall) error {
	g.came <- struct{}{}
	select {
	case <-g.let:
	case <-ctx.Done():
		g.fail <- struct{}{}
		return ctx.Err()
	}
	_, err := io.Copy(c, bytes.NewReader([]byte("done")))
	return err
}

// gated opens endpoints with a gate.
func gated(t *testing.T, open Opener, s rx.Service) (*gate, rx.Endpoint, rx.Endpoint) {
	t.Helper()
	g := newGate()
	s.ID, s.Handler = 1, g
	client, server := open(t, []rx.Service{s})
	return g, client, server
}

// ask sends the request of a call.
func ask(t testing.TB, k rx.Call) {
	t.Helper()
	if _, err := k.Write([]byte("go on")); err != nil {
		t.Fatal(err)
	}
	if err := k.CloseWrite(); err != nil {
		t.Fatal(err)
	}
}

func (g *gate) wait(t testing.TB) {
	t.Helper()
	select {
	case <-g.came:
	case <-time.After(patience):
		t.Fatal("no call has come")
	}
}

func (g *gate) failed(t testing.TB) {
	t.Helper()
	select {
	case <-g.fail:
	case <-time.After(patience):
		t.Fatal("the handler's context has not ended")
	}
}

func testChannels(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	conn := dial(t, client, server, 1, rx.DialConfig{})
	var calls [4]rx.Call
	for i := range calls {
		calls[i] = begin(t, conn)
		ask(t, calls[i])
		g.wait(t)
	}
	fifth := make(chan error, 1)
	go func() {
		k, err := conn.Begin(within(t))
		if err == nil {
			err = k.Close()
		}
		fifth <- err
	}()
	g.let <- struct{}{} // one of them
	close(g.let)
	for i, k := range calls {
		if got, err := io.ReadAll(k); err != nil || string(got) != "done" {
			t.Errorf("call %d: %q, %v", i, got, err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-fifth; err != nil {
		t.Errorf("the fifth call: %v", err)
	}
}

func testConcurrency(t *testing.T, open Opener) {
	client, server := open(t, Services())
	var wg sync.WaitGroup
	for i := range 3 {
		sinks, sources := dial(t, client, server, Sink, rx.DialConfig{}), dial(t, client, server, Source, rx.DialConfig{})
		for j := range 6 {
			wg.Go(func() {
				for n := range 8 {
					size := (i + 7*j + 31*n) * 1777
					if err := put(within(t), sinks, size, sizes[(i+j+n)%4]); err != nil {
						t.Errorf("to the server: %v", err)
					}
					if err := get(within(t), sources, size, sizes[(i+n)%4], sizes[j%4]); err != nil {
						t.Errorf("from the server: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
}

func testCodes(t *testing.T, open Opener) {
	client, server := open(t, Services())
	conn := dial(t, client, server, Fail, rx.DialConfig{})
	for _, code := range []int32{13, -7, 267269, -1 << 31} {
		_, err := exchange(within(t), conn, binary.BigEndian.AppendUint32(nil, uint32(code)))
		wantCode(t, err, code)
	}
	_, err := exchange(within(t), conn, []byte("ab")) // io.ErrUnexpectedEOF has no code
	wantCode(t, err, rx.UserAbort)
}

func testPanic(t *testing.T, open Opener) {
	client, server := open(t, Services())
	_, err := exchange(within(t), dial(t, client, server, Panic, rx.DialConfig{}), nil)
	wantCode(t, err, rx.UserAbort)
	if got, err := exchange(within(t), dial(t, client, server, Echo, rx.DialConfig{}), []byte("x")); string(got) != "x" {
		t.Errorf("the next call: %q, %v", got, err)
	}
}

func testClientAborts(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	conn := dial(t, client, server, 1, rx.DialConfig{})
	for range 6 {
		k := begin(t, conn)
		ask(t, k)
		g.wait(t)
		if err := k.Abort(77); err != nil {
			t.Error(err)
		}
		_, err := k.Read(make([]byte, 1<<20))
		wantCode(t, err, 77)
		g.failed(t)
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

func testClosedAmidReply(t *testing.T, open Opener) {
	client, server := open(t, Services())
	conn := dial(t, client, server, Source, rx.DialConfig{})
	for i := range 12 {
		k := begin(t, conn)
		request := binary.BigEndian.AppendUint64(nil, 100<<20)
		if _, err := k.Write(binary.BigEndian.AppendUint64(request, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if err := k.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, k, int64(i)*100_000); err != nil {
			t.Error(err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := get(within(t), conn, 1<<20, 1<<20, 1<<20); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func testContext(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	conn := dial(t, client, server, 1, rx.DialConfig{})
	for _, n := range []int{1, 1 << 20} {
		ctx, cancel := context.WithCancel(within(t))
		k, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, k)
		g.wait(t)
		read := make(chan error, 1)
		go func() {
			_, err := k.Read(make([]byte, n))
			read <- err
		}()
		cancel()
		err = <-read
		wantCode(t, err, rx.UserAbort)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error does not say that the context ended: %v", err)
		}
		g.failed(t)
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	if _, err := conn.Begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a call with a context that is over: %v", err)
	}
}

func testContextOfBegin(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	conn := dial(t, client, server, 1, rx.DialConfig{})
	for range 4 {
		ask(t, begin(t, conn))
		g.wait(t)
	}
	ctx, cancel := context.WithCancel(within(t))
	fifth := make(chan error, 1)
	go func() {
		_, err := conn.Begin(ctx)
		fifth <- err
	}()
	cancel()
	if err := <-fifth; !errors.Is(err, context.Canceled) {
		t.Errorf("the fifth call: %v", err)
	}
	close(g.let)
}

func testQueueFull(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{Workers: 1, Queue: -1, Busy: 4242})
	conn := dial(t, client, server, 1, rx.DialConfig{})
	k := begin(t, conn)
	ask(t, k)
	g.wait(t)
	_, err := exchange(within(t), conn, []byte("one too many"))
	wantCode(t, err, 4242)
	close(g.let)
	if got, err := io.ReadAll(k); err != nil || string(got) != "done" {
		t.Errorf("%q, %v", got, err)
	}
}

func testOrder(t *testing.T, open Opener) {
	client, server := open(t, Services())
	k := begin(t, dial(t, client, server, Echo, rx.DialConfig{}))
	if _, err := k.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	if n, err := k.Read(make([]byte, 10)); err == nil || n > 0 {
		t.Errorf("%d bytes were read", n)
	}
	if err := k.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write([]byte("b")); err == nil {
		t.Error("something was written after the end")
	}
	if got, err := io.ReadAll(k); err != nil || string(got) != "a" {
		t.Errorf("%q, %v", got, err)
	}
	if n, err := k.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func testEarly(t *testing.T, open Opener) {
	client, server := open(t, Services())
	conn := dial(t, client, server, Early, rx.DialConfig{})
	for _, n := range []int{4, 5, 100_000, 5 << 20} {
		got, err := exchange(within(t), conn, pattern(n))
		if err != nil || !bytes.Equal(got, pattern(4)) {
			t.Errorf("a request of %d bytes: % x, %v", n, got, err)
		}
	}
}

func testNoService(t *testing.T, open Opener) {
	client, server := open(t, Services())
	conn, err := client.Dial(within(t), server.Addr(), 999, rx.DialConfig{})
	if err == nil {
		_, err = exchange(within(t), conn, []byte("x"))
		_ = conn.Close()
	}
	wantCode(t, err, -2)
}

func testUpgrade(t *testing.T, open Opener) {
	client, server := open(t, Services())
	for _, tt := range []struct {
		service uint16
		upgrade bool
		want    uint16
		reply   string
	}{{Old, false, Old, "old"}, {Old, true, New, "new"}, {New, true, New, "new"}} {
		conn := dial(t, client, server, tt.service, rx.DialConfig{Upgrade: tt.upgrade})
		got, err := exchange(within(t), conn, nil)
		if err != nil || string(got) != tt.reply || conn.Service() != tt.want {
			t.Errorf("service %d, upgrade %t: %q of service %d, %v", tt.service, tt.upgrade, got, conn.Service(), err)
		}
	}
}

func testShutdown(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	conn := dial(t, client, server, 1, rx.DialConfig{DeadTime: time.Hour})
	k := begin(t, conn)
	ask(t, k)
	g.wait(t)
	shut := make(chan error, 1)
	go func() { shut <- server.Shutdown(within(t)) }()
	select {
	case err := <-shut:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(g.let)
	if got, err := io.ReadAll(k); err != nil || string(got) != "done" {
		t.Errorf("the call: %q, %v", got, err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if err := <-shut; err != nil {
		t.Error(err)
	}
	if _, err := exchange(within(t), conn, nil); err == nil {
		t.Error("a call after the shutdown was served")
	}
}

func testShutdownContext(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	k := begin(t, dial(t, client, server, 1, rx.DialConfig{DeadTime: time.Hour}))
	ask(t, k)
	g.wait(t)
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	if err := server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it returns %v", err)
	}
	g.failed(t)
	if _, err := io.ReadAll(k); err == nil {
		t.Error("the call had a reply")
	}
}

func testClose(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	for _, which := range []string{"the client", "the server"} {
		k := begin(t, dial(t, client, server, 1, rx.DialConfig{DeadTime: time.Hour}))
		ask(t, k)
		g.wait(t)
		e := client
		if which == "the server" {
			e = server
		}
		read := make(chan error, 1)
		go func() {
			_, err := k.Read(make([]byte, 1<<20))
			read <- err
		}()
		if which == "the client" {
			if err := k.Abort(rx.UserAbort); err != nil {
				t.Error(err)
			}
		} else if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-read; err == nil {
			t.Errorf("%s was closed, and the call had a reply", which)
		}
		g.failed(t)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Dial(within(t), server.Addr(), 1, rx.DialConfig{}); err == nil {
		t.Error("an endpoint that is closed has made a connection")
	}
}

func testConnClose(t *testing.T, open Opener) {
	g, client, server := gated(t, open, rx.Service{})
	conn := dial(t, client, server, 1, rx.DialConfig{})
	k := begin(t, conn)
	ask(t, k)
	g.wait(t)
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if _, err := k.Read(make([]byte, 1)); err == nil {
		t.Error("the call had a reply")
	}
	g.failed(t)
	if _, err := conn.Begin(within(t)); err == nil {
		t.Error("a call was begun on a connection that is closed")
	}
}

func testIdleDead(t *testing.T, open Opener) {
	_ = diesOf(t, open, func(limit time.Duration) (rx.Service, rx.DialConfig) {
		return rx.Service{}, rx.DialConfig{IdleDead: limit}
	})
}

func testHardDead(t *testing.T, open Opener) {
	err := diesOf(t, open, func(limit time.Duration) (rx.Service, rx.DialConfig) {
		return rx.Service{HardDead: limit}, rx.DialConfig{}
	})
	if fmt.Sprint(err) == "" {
		t.Error("the error has no text")
	}
}

// diesOf has a call whose handler does not answer end by a limit, and returns its error. If the
// call does not reach its handler within the limit, as on a machine that stands still, the limit
// becomes longer.
func diesOf(t *testing.T, open Opener, with func(limit time.Duration) (rx.Service, rx.DialConfig)) error {
	t.Helper()
	for limit := 300 * time.Millisecond; ; limit *= 4 {
		service, cfg := with(limit)
		g, client, server := gated(t, open, service)
		k := begin(t, dial(t, client, server, 1, cfg))
		_, sent := k.Write([]byte("go on"))
		sent = errors.Join(sent, k.CloseWrite())
		_, err := k.Read(make([]byte, 1<<20))
		wantCode(t, err, -3)
		select {
		case <-g.came:
			if sent != nil {
				t.Errorf("the request: %v", sent)
			}
			g.failed(t)
			return err
		default:
		}
		if limit > patience {
			t.Fatal("no call has come")
		}
	}
}
