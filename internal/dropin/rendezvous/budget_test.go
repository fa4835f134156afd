package rendezvous

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"urnic/rnic"
)

func TestBudgetIsInfiniBandsWithinBounds(t *testing.T) {
	for _, tt := range []struct {
		timeout, retries uint32
		want             time.Duration
	}{
		{0, 7, 0},
		{0, 0, 0},
		{1, 0, 4 * time.Second},
		{14, 7, 4 * time.Second}, // 2.1 s
		{16, 7, 4 * 4096 * time.Nanosecond << 16 * 8}, // 8.6 s
		{18, 0, 4 * 4096 * time.Nanosecond << 18},     // 4.3 s
		{18, 7, 4 * 4096 * time.Nanosecond << 18 * 8}, // 34 s
		{21, 7, 2 * time.Minute},
		{31, 7, 2 * time.Minute},
		{1 << 31, 1 << 31, 2 * time.Minute},
	} {
		if got := Budget(tt.timeout, tt.retries, ShortestBudget); got != tt.want {
			t.Errorf("timeout %d, %d retries: %v; want %v", tt.timeout, tt.retries, got, tt.want)
		}
	}
}

// ways in which the peer may not come.
var absences = map[string]func(s *sim, b *side){
	"in INIT":     func(*sim, *side) {},
	"destroyed":   func(_ *sim, b *side) { b.ep.Close() },
	"ended":       func(_ *sim, b *side) { b.kill() },
	"unreachable": func(s *sim, _ *side) { s.blocked = func(netip.Addr, netip.Addr) bool { return true } },
	"elsewhere":   func(s *sim, b *side) { b.up(s.process(hostC).side()) },
}

// Without anything to send, a queue pair waits for its peer for ever. With something,
// it has the time that the program gives, from then on.
func TestTimeRunsWhileThereIsSomethingToSend(t *testing.T) {
	for name, absent := range absences {
		for _, hosts := range [][2]netip.Addr{{hostA, hostB}, {hostB, hostA}} {
			t.Run(name+", to "+hosts[1].String(), func(t *testing.T) {
				inSim(t, func(s *sim) {
					a, b := s.process(hosts[0]).side(), s.process(hosts[1]).side()
					absent(s, b)
					a.up(b)
					time.Sleep(time.Hour)
					const budget = 10 * time.Second
					a.rts(budget)
					if err := a.qp.PostRecv(rnic.RecvWR{}); err != nil {
						s.Fatal(err)
					}
					time.Sleep(time.Hour)
					wantPending(s, a)
					if err := a.qp.PostSend(rnic.SendWR{Op: rnic.OpSend}); err != nil {
						s.Fatal(err)
					}
					begin := time.Now()
					var unreachable *UnreachableError
					if err := <-a.done; !errors.As(err, &unreachable) || unreachable.QPN != a.num || unreachable.Peer.QPN != b.num {
						s.Errorf("%v; want an *UnreachableError", err)
					} else if name == "ended" && SlotOf(a.num) != 0 && !errors.Is(err, syscall.ECONNREFUSED) {
						s.Errorf("%v; want one that says that the connection is refused", err)
					}
					if d := time.Since(begin); d < budget || d > budget+time.Second+dialTimeout {
						s.Errorf("it took %v; want %v", d, budget)
					}
					if st := a.qp.State(); st != rnic.Idle {
						s.Errorf("the queue pair is in state %v; it is the caller's to end it", st)
					}
				})
			})
		}
	}
}

func TestUnboundedTimeIsNotBounded(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b := s.process(hostA).side(), s.process(hostB).side()
		a.rtr(b)
		a.rts(0)
		if err := a.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled}); err != nil {
			s.Fatal(err)
		}
		time.Sleep(100 * time.Hour)
		wantPending(s, a)
		if err := b.qp.PostRecv(rnic.RecvWR{}); err != nil {
			s.Fatal(err)
		}
		b.up(a)
		wants(s, a, b)
		if n, err := b.recv.Wait(s.Context(), make([]rnic.WC, 1)); n != 1 || err != nil {
			s.Errorf("what has waited: %d, %v", n, err)
		}
	})
}

func TestSlotsAreTakenInTurn(t *testing.T) {
	inSim(t, func(s *sim) {
		var all []*process
		for i := range 5 {
			p := s.process(hostA)
			if got := p.m.Slot(); got != uint32(i+1) {
				s.Errorf("process %d has slot %d", i, got)
			}
			all = append(all, p)
		}
		all[2].kill()
		if got := s.process(hostA).m.Slot(); got != 3 {
			s.Errorf("slot %d; want that of the process that has ended", got)
		}
		if got := s.process(hostB).m.Slot(); got != 1 {
			s.Errorf("slot %d on another host", got)
		}
		if err := all[0].m.Bind(s.Context()); !errors.Is(err, rnic.ErrBusy) {
			s.Errorf("a second slot: %v", err)
		}
		if got := all[0].m.Slot(); got != 1 {
			s.Errorf("slot %d after that", got)
		}
	})
}

func TestNoSlotIsLeft(t *testing.T) {
	tried := map[string]bool{}
	for name, tt := range map[string]struct {
		fails syscall.Errno
		want  error
		tries int
	}{
		"all are taken":   {syscall.EADDRINUSE, ErrNoSlot, Slots},
		"none is allowed": {syscall.EACCES, syscall.EACCES, 1},
	} {
		clear(tried)
		m := New(Config{FirstPort: 30000, Reserve: func(_ context.Context, address string) (Port, error) {
			tried[address] = true
			return nil, &net.OpError{Op: "listen", Err: tt.fails}
		}})
		if err := m.Bind(t.Context()); !errors.Is(err, tt.want) || m.Slot() != 0 {
			t.Errorf("%s: %v, slot %d", name, err, m.Slot())
		}
		if len(tried) != tt.tries || !tried[":30000"] {
			t.Errorf("%s: %d ports were tried", name, len(tried))
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
