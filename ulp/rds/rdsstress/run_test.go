package rdsstress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/rds"
)

var (
	serverAddr = loopback.Process().Addr(1)
	clientAddr = loopback.Process().Addr(2)
)

var transports = map[string]func(t testing.TB) rds.Transport{
	"tcp":    func(testing.TB) rds.Transport { return &rds.TCP{Port: 26389, Paths: 1} },
	"tcp, 8": func(testing.TB) rds.Transport { return &rds.TCP{Port: 26389} },
	"iwarp":  func(t testing.TB) rds.Transport { return iwarp(t, nil) },
}

func iwarp(t testing.TB, network rnic.Network) *rds.IWARP {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{Network: network})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rds.IWARP{Device: dev}
}

func open(t testing.TB, a netip.Addr, transport rds.Transport) *rds.Node {
	t.Helper()
	n, err := rds.Open(t.Context(), rds.Config{Addr: a, Transports: []rds.Transport{transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func params(requests, acks uint32, tasks uint16, depth uint32) Params {
	p := Params{Depth: depth, RequestSize: requests, AckSize: acks, Port: 4000, Tasks: tasks, Vectors: 1}
	p.Flags[Verify] = 1
	return p
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func listener(t testing.TB, port string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(serverAddr.String(), port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// outcome is what has come of one side.
type outcome struct {
	*Result
	err error
}

// both runs both sides.
func both(ctx context.Context, t testing.TB, p Params, transport func(testing.TB) rds.Transport, o Options) (active, passive outcome) {
	t.Helper()
	l := listener(t, "4000")
	server, client := open(t, serverAddr, transport(t)), open(t, clientAddr, transport(t))
	done := make(chan outcome, 1)
	go func() {
		c, err := Accept(ctx, l)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		result, err := c.Run(ctx, server, Options{Transport: o.Transport})
		done <- outcome{result, err}
	}()
	c, err := Dial(ctx, clientAddr, serverAddr, p)
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Run(ctx, client, o)
	return outcome{result, err}, <-done
}

func TestBothSides(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			leakcheck.Check(t)
			p := params(3000, 100, 3, 4)
			active, passive := both(within(t), t, p, transport, Options{Requests: 2000})
			for side, o := range map[string]outcome{"active": active, "passive": passive} {
				if o.err != nil {
					t.Fatalf("%s: %v", side, o.err)
				}
				if o.Unanswered != 0 || o.All.RequestsSent != o.All.AcksReceived || o.All.RequestsReceived != o.All.AcksSent {
					t.Errorf("%s: %d requests are unanswered: %+v", side, o.Unanswered, o.All)
				}
				if l := o.Latency(); l == nil || l.Min <= 0 || l.P50 < l.Min || l.Max < l.P50 {
					t.Errorf("%s: the latency is %+v", side, l)
				}
			}
			if active.All.RequestsSent < 2000 || active.All.RequestsSent != passive.All.RequestsReceived || passive.All.RequestsSent != active.All.RequestsReceived ||
				passive.All.RequestsSent == 0 || active.All.BytesSent != passive.All.BytesReceived {
				t.Errorf("active: %+v; passive: %+v", active.All, passive.All)
			}
		})
	}
}

// What a run has not lost itself does not count: the connection of a run before, whose other side has ended, and is made
// again for this one.
func TestConnectionsOfAnotherRunAreNotLost(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			up, idle := 0, make(chan struct{}, 1)
			client, err := rds.Open(t.Context(), rds.Config{Addr: clientAddr, Transports: []rds.Transport{transport(t)}, Events: func(e rds.Event) {
				switch e.Kind {
				case rds.Connected:
					up++
				case rds.Disconnected:
					if up--; up == 0 {
						select {
						case idle <- struct{}{}:
						default:
						}
					}
				default:
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for run := range 3 {
				l := listener(t, "4000")
				server, err := rds.Open(t.Context(), rds.Config{Addr: serverAddr, Transports: []rds.Transport{transport(t)}})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan outcome, 1)
				go func() {
					c, err := Accept(ctx, l)
					if err != nil {
						done <- outcome{err: err}
						return
					}
					result, err := c.Run(ctx, server, Options{})
					done <- outcome{result, err}
				}()
				c, err := Dial(ctx, clientAddr, serverAddr, params(100, 100, 1, 1))
				if err != nil {
					t.Fatal(err)
				}
				result, err := c.Run(ctx, client, Options{Requests: 50})
				passive := <-done
				select { // of links that it was to dial itself
				case <-idle:
				default:
				}
				if err := errors.Join(err, passive.err, server.Close(), l.Close()); err != nil {
					t.Fatal(err)
				}
				<-idle // else it would still send to the server that has ended
				if result.Reconnects != 0 || result.Retransmitted != 0 || passive.Reconnects != 0 {
					t.Errorf("run %d: active: %+v, passive: %+v", run, result, passive.Result)
				}
			}
			again := uint64(0)
			for _, c := range client.Info(0).Counters {
				if c.Name == "reconnects" {
					again = c.Value
				}
			}
			if again == 0 {
				t.Error("no connection was made again")
			}
		})
	}
}

// A passive side whose transport lets both sides dial sends nothing before the active side has.
func TestThePassiveSideWaitsForTheFirstMessage(t *testing.T) {
	for _, test := range []struct {
		transport    string
		active, held bool
	}{{"iwarp", false, true}, {"iwarp", true, false}, {"tcp", false, false}} {
		c := &Control{Active: test.active, Params: params(100, 100, 1, 1)}
		r := &run{c: c, node: open(t, serverAddr, transports[test.transport](t)), answered: make(chan struct{})}
		r.ctx, r.fail = context.WithCancelCause(t.Context())
		r.hold()
		if r.held.Load() != test.held {
			t.Errorf("%+v", test)
		}
		close(r.answered)
		r.workers.Wait()
		if r.fail(nil); r.held.Load() {
			t.Errorf("%+v: it waits on", test)
		}
		if err := r.node.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An outlier is reported with its time and its ports.
func TestOutliers(t *testing.T) {
	var found atomic.Int64
	report := func(took time.Duration, from, to uint16) {
		found.Add(1)
		if took <= time.Nanosecond || from < 4001 || from > 4002 || to < 4001 || to > 4002 {
			t.Errorf("%v from port %d to port %d", took, from, to)
		}
	}
	active, passive := both(within(t), t, params(100, 100, 2, 1), transports["tcp"], Options{Requests: 20, OutlierTime: time.Nanosecond, Outlier: report})
	if err := errors.Join(active.err, passive.err); err != nil {
		t.Fatal(err)
	}
	if found.Load() != int64(active.All.AcksReceived) {
		t.Errorf("%d of %d", found.Load(), active.All.AcksReceived)
	}
}

func TestOneWay(t *testing.T) {
	p := params(500, HeaderLen, 2, 2)
	p.Flags[Simplex] = 1
	active, passive := both(within(t), t, p, transports["tcp"], Options{Requests: 100})
	if err := errors.Join(active.err, passive.err); err != nil {
		t.Fatal(err)
	}
	if passive.All.RequestsSent != 0 || passive.All.AcksSent != active.All.RequestsSent {
		t.Errorf("the passive side has sent %+v, the active one %+v", passive.All, active.All)
	}
}

// What may be outstanding can be more than a node holds of a peer's unread messages.
func TestMoreOutstandingThanANodeHolds(t *testing.T) {
	active, passive := both(within(t), t, params(1<<20, 64, 1, 32), transports["tcp"], Options{Requests: 40})
	if err := errors.Join(active.err, passive.err); err != nil {
		t.Fatal(err)
	}
}

// A type of service is told in the long form, and used.
func TestTypeOfService(t *testing.T) {
	p := params(100, 100, 1, 1)
	p.TOS = 3
	active, passive := both(within(t), t, p, transports["iwarp"], Options{Requests: 10})
	if err := errors.Join(active.err, passive.err); err != nil {
		t.Fatal(err)
	}
}

func TestTheContextEndsBothSidesInOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t))
	l := listener(t, "4000")
	server, client := open(t, serverAddr, transports["tcp"](t)), open(t, clientAddr, transports["tcp"](t))
	done := make(chan outcome, 1)
	go func() {
		c, err := Accept(t.Context(), l)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		result, err := c.Run(t.Context(), server, Options{})
		done <- outcome{result, err}
	}()
	c, err := Dial(ctx, clientAddr, serverAddr, params(100, 100, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Run(ctx, client, Options{Every: time.Millisecond, Interval: func(s Sample) {
		if s.AcksReceived > 0 {
			cancel()
		}
	}})
	if err != nil || result.Unanswered != 0 {
		t.Errorf("active: %v, %d unanswered", err, result.Unanswered)
	}
	if o := <-done; o.err != nil || o.Unanswered != 0 {
		t.Errorf("passive: %v, %d unanswered", o.err, o.Unanswered)
	}
}

// The active side of the original closes its control connection at once, and answers nothing after that.
func TestAnActiveSideThatIsGone(t *testing.T) {
	ctx := within(t)
	l := listener(t, "4000")
	server := open(t, serverAddr, transports["tcp"](t))
	p := originalParams(t)
	p.Receive = clientAddr
	done := make(chan outcome, 1)
	go func() {
		c, err := Accept(ctx, l)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		result, err := c.Run(ctx, server, Options{})
		done <- outcome{result, err}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{p.AppendTo(nil), original(t, "active", "control")[1]} {
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if o := <-done; o.err != nil || o.Unanswered != 1 {
		t.Errorf("%v, %d unanswered", o.err, o.Unanswered)
	}
}

// What can't be is refused with a reason, and takes no node down.
func TestBadControlConnections(t *testing.T) {
	for name, test := range map[string]struct {
		bytes []byte
		want  string
	}{
		"nothing":     {nil, "no rds-stress"},
		"HTTP":        {[]byte("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a browser that has come to the wrong port\r\n"), "tasks: there can be"},
		"no go":       {new(valid()).AppendTo(nil), "has ended the run before it began"},
		"cut short":   {new(valid()).AppendTo(nil)[:40], "no rds-stress"},
		"many tasks":  {new(params(100, 100, 60000, 1)).AppendTo(nil), "60000 tasks"},
		"small acks":  {new(params(100, 60, 1, 1)).AppendTo(nil), "acks of 60 bytes"},
		"large depth": {new(params(100, 100, 1, 1<<31)).AppendTo(nil), "depth"},
	} {
		t.Run(name, func(t *testing.T) {
			l := listener(t, "0")
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(test.bytes); err != nil {
				t.Fatal(err)
			}
			conn.(*net.TCPConn).CloseWrite()
			c, err := Accept(within(t), l)
			if err == nil {
				_, err = c.Run(within(t), open(t, serverAddr, transports["tcp"](t)), Options{})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v; want %q", err, test.want)
			}
			conn.Close()
		})
	}
}

// A peer that damages messages ends the run, on the side that notices and on the other one.
func TestADamagedMessageEndsTheRun(t *testing.T) {
	ctx := within(t)
	l := listener(t, "4000")
	server, client := open(t, serverAddr, transports["tcp"](t)), open(t, clientAddr, transports["tcp"](t))
	done := make(chan outcome, 1)
	go func() {
		c, err := Accept(ctx, l)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		result, err := c.Run(ctx, server, Options{})
		done <- outcome{result, err}
	}()
	c, err := Dial(ctx, clientAddr, serverAddr, params(100, 100, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.Bind(4001)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ready(ctx, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	h := Header{From: clientAddr, To: serverAddr, FromPort: 4001, ToPort: 4001, Op: Request}
	if err := s.SendTo(ctx, h.AppendTo(nil), rds.Addr{Host: serverAddr, Port: 4001}); err != nil {
		t.Fatal(err)
	}
	o := <-done
	if m, is := errors.AsType[*Mismatch](o.err); !is || !strings.Contains(m.Error(), "request 0 from port 4001 to port 4001: it has 63 bytes, and not 100") {
		t.Errorf("the passive side says %v", o.err)
	}
	if _, err := io.ReadAll(c.conn); err != nil {
		t.Errorf("the control connection ends with %v", err)
	}
	c.Close()
}
