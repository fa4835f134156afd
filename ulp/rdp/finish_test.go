package rdp

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/rdp/machine"
)

// A probe takes a round trip, also while messages wait, and one that is lost takes as long as it is until it is sent
// again. It ends with the connection.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, n := inMemory(t, Faults{Delay: 30 * time.Millisecond})
		from, to := open(t, a, b, 2, Params{Window: 2})
		for range 3 {
			if took, err := from.Probe(t.Context()); err != nil || took != 60*time.Millisecond {
				t.Errorf("it takes %v, %v", took, err)
			}
		}
		if err := from.Send(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		if err := from.Send(t.Context(), []byte("b")); err != nil {
			t.Fatal(err)
		}
		if took, err := from.Probe(t.Context()); err != nil || took != 60*time.Millisecond { // since there was room
			t.Errorf("behind messages it takes %v, %v", took, err)
		}
		n.SetFaults(Faults{Delay: 30 * time.Millisecond, Loss: 1})
		time.AfterFunc(200*time.Millisecond, func() { n.SetFaults(Faults{Delay: 30 * time.Millisecond}) })
		if took, err := from.Probe(t.Context()); err != nil || took < 230*time.Millisecond {
			t.Errorf("with a loss it takes %v, %v", took, err)
		}
		time.AfterFunc(10*time.Millisecond, func() { to.Close() })
		if took, err := from.Probe(t.Context()); !errors.Is(err, machine.ErrReset) {
			t.Errorf("to a peer that closes: %v, %v", took, err)
		}
		if _, err := from.Probe(t.Context()); !errors.Is(err, machine.ErrNotOpen) {
			t.Errorf("on a connection that has ended: %v", err)
		}
	})
}

// A peer can tell Abort from Close.
func TestAbort(t *testing.T) {
	for _, strict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b, _ := inMemoryWith(t, Faults{Delay: time.Millisecond}, machine.Config{StrictReset: strict})
			for _, abort := range []bool{false, true} {
				from, to := open(t, a, b, 2, Params{})
				if err := from.Send(t.Context(), []byte("hello")); err != nil {
					t.Fatal(err)
				}
				if err := from.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				end := from.Close
				if abort {
					end = from.Abort
				}
				if err := end(); err != nil {
					t.Fatal(err)
				}
				if msg, err := to.Receive(t.Context()); err != nil || string(msg.Data) != "hello" {
					t.Errorf("%q, %v", msg.Data, err)
				}
				if _, err := to.Receive(t.Context()); !errors.Is(err, machine.ErrReset) || to.Status().Short != abort {
					t.Errorf("strict %v, abort %v: %v, short %v", strict, abort, err, to.Status().Short)
				}
				time.Sleep(time.Minute) // CLOSE-WAIT, which keeps the port
				b.mu.Lock()
				for _, l := range b.listeners {
					_ = l.end(b.now()) // it was open
				}
				b.mu.Unlock()
			}
		})
	}
}

// An RST that is lost can be sent again, until CLOSE-WAIT is over.
func TestRepeatClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, n := inMemory(t, Faults{Delay: time.Millisecond})
		from, to := open(t, a, b, 1, Params{Keepalive: -1})
		n.SetFaults(Faults{Loss: 1})
		if err := from.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := to.Status(); s.State != machine.Open {
			t.Fatalf("the RST is not lost: %v", s.State)
		}
		n.SetFaults(Faults{})
		from.RepeatClose()
		if _, err := to.Receive(t.Context()); !errors.Is(err, machine.ErrReset) || to.Status().Short {
			t.Errorf("%v, short %v", err, to.Status().Short)
		}
		time.Sleep(time.Minute)
		before := n.Sent()
		from.RepeatClose()
		if n.Sent() != before {
			t.Error("it is sent after CLOSE-WAIT")
		}
	})
}

func TestInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, n := inMemory(t, Faults{Delay: time.Millisecond})
		from, to := open(t, a, b, 1, Params{Sequenced: true, Window: 9, MaxSegment: 1000})
		n.SetFaults(Faults{Loss: 1})
		if err := from.Send(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		i := a.Info()
		if i.Addr != a.LocalAddr() || i.Seconds != 5 || len(i.Listeners) != 0 || len(i.Connections) != 1 || i.Counters.Opened != 1 {
			t.Fatalf("%+v", i)
		}
		if c := i.Connections[0]; c.Version != 1 || c.Peer != b.LocalAddr() || c.PeerPort != 77 || c.Port != from.LocalPort() || c.State != "OPEN" || !c.Sequenced ||
			c.Unacknowledged != 1 || c.InFlight != 1 || c.Window != 9 || c.RecvMax != 1000 || c.SendMax != 1000 || c.Congestion != nil || c.RTT != 2 || c.Stats.Timeouts < 3 {
			t.Errorf("%+v", c)
		}
		if i := b.Info(); len(i.Listeners) != 1 || i.Listeners[0] != (ListenerInfo{Port: 77}) || len(i.Connections) != 1 {
			t.Errorf("%+v", i)
		}
		to.Close()
		if c := b.Info().Connections[0]; c.State != "CLOSE-WAIT" || c.Error != "" {
			t.Errorf("%+v", c)
		}
		var got Info
		text, err := json.Marshal(i)
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got.Connections[0] != i.Connections[0] || got.Counters != i.Counters {
			t.Errorf("%s, %v", text, err)
		}
	})
}
