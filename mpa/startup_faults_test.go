package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
)

// A phase is a start-up in which the peer has to say bytes.
type phase struct {
	name   string
	octets []byte // what the peer has to say for the phase to end well
	limit  time.Duration
	start  func(ctx context.Context, conn *simnet.Conn, p *peer) <-chan started
}

var phases = []phase{
	{
		"waiting for the Request", frame(reqKey, 0x50, 2, 0, 1, 0, 1, 'p', 'd'), DefaultRequestTimeout,
		func(ctx context.Context, conn *simnet.Conn, _ *peer) <-chan started {
			return responds(ctx, conn, Config{})
		},
	},
	{
		"waiting for the Request, a limit set", frame(reqKey, 0, 1), 3 * time.Minute,
		func(ctx context.Context, conn *simnet.Conn, _ *peer) <-chan started {
			return responds(ctx, conn, Config{RequestTimeout: 3 * time.Minute, ReplyTimeout: time.Hour})
		},
	},
	{
		"waiting for the Reply", frame(repKey, 0x50, 2, 0, 1, 0, 1, 'p', 'd'), DefaultReplyTimeout,
		func(ctx context.Context, conn *simnet.Conn, p *peer) <-chan started {
			done := initiates(ctx, conn, Config{IRD: 1, ORD: 1})
			p.hears(24)
			return done
		},
	},
	{
		"waiting for the Reply, a limit set", frame(repKey, 0x40, 1), 3 * time.Minute,
		func(ctx context.Context, conn *simnet.Conn, p *peer) <-chan started {
			done := initiates(ctx, conn, Config{Revision: 1, ReplyTimeout: 3 * time.Minute, RequestTimeout: time.Hour})
			p.hears(20)
			return done
		},
	},
}

// atEachOctet runs f for each phase and each byte before which the peer may
// stop: it has said all the others.
func atEachOctet(t *testing.T, f func(t *testing.T, ph phase, cancel context.CancelCauseFunc, said int, p *peer, done <-chan started)) {
	t.Helper()
	for _, ph := range phases {
		t.Run(ph.name, func(t *testing.T) {
			for said := range ph.octets {
				beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					done := ph.start(ctx, conn, p)
					if said > 0 {
						p.says(ph.octets[:said])
					}
					synctest.Wait()
					f(t, ph, cancel, said, p, done)
				})
			}
		})
	}
}

func TestPeerThatStallsAtAnyOctetRunsIntoTheTimeLimit(t *testing.T) {
	atEachOctet(t, func(t *testing.T, ph phase, _ context.CancelCauseFunc, said int, p *peer, done <-chan started) {
		start := time.Now()
		s := <-done
		wantCode(t, fmt.Sprintf("%d octets", said), s.err, CodeConnectionLost)
		if !errors.Is(s.err, os.ErrDeadlineExceeded) || s.conn != nil || time.Since(start) != ph.limit {
			t.Errorf("%d octets: %v after %v; want a timeout after %v", said, s.err, time.Since(start), ph.limit)
		}
		p.expectsEnd()
	})
}

// The limit is for the whole frame: bytes that trickle in do not extend it.
func TestPeerThatTricklesRunsIntoTheTimeLimit(t *testing.T) {
	for _, ph := range phases {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			start := time.Now()
			done := ph.start(t.Context(), conn, p)
			var trickle sync.WaitGroup
			defer trickle.Wait()
			trickle.Go(func() {
				for i := range ph.octets {
					time.Sleep(ph.limit / 10)
					if _, err := p.conn.Write(ph.octets[i : i+1]); err != nil {
						return
					}
				}
			})
			s := <-done
			if !errors.Is(s.err, os.ErrDeadlineExceeded) || time.Since(start) != ph.limit {
				t.Errorf("%s: %v after %v; want a timeout after %v", ph.name, s.err, time.Since(start), ph.limit)
			}
		})
	}
}

func TestPeerThatClosesAtAnyOctetIsLost(t *testing.T) {
	atEachOctet(t, func(t *testing.T, _ phase, _ context.CancelCauseFunc, said int, p *peer, done <-chan started) {
		_ = p.conn.Close()
		s := <-done
		e := wantCode(t, fmt.Sprintf("%d octets", said), s.err, CodeConnectionLost)
		want := io.ErrUnexpectedEOF
		if said == 0 {
			want = io.EOF
		}
		if !errors.Is(e, want) || s.conn != nil {
			t.Errorf("%d octets: %v; want %v", said, s.err, want)
		}
		p.expectsEnd()
	})
}

func TestPeerThatResetsAtAnyOctetIsLost(t *testing.T) {
	atEachOctet(t, func(t *testing.T, _ phase, _ context.CancelCauseFunc, said int, p *peer, done <-chan started) {
		_ = p.conn.Abort()
		s := <-done
		e := wantCode(t, fmt.Sprintf("%d octets", said), s.err, CodeConnectionLost)
		if !errors.Is(e, syscall.ECONNRESET) || s.conn != nil {
			t.Errorf("%d octets: %v; want ECONNRESET", said, s.err)
		}
	})
}

func TestContextEndsTheWaitAtAnyOctet(t *testing.T) {
	cause := errors.New("the operator went home")
	atEachOctet(t, func(t *testing.T, _ phase, cancel context.CancelCauseFunc, said int, p *peer, done <-chan started) {
		start := time.Now()
		cancel(cause)
		s := <-done
		if !errors.Is(s.err, cause) || s.conn != nil || time.Since(start) != 0 {
			t.Errorf("%d octets: %v after %v; want %v at once", said, s.err, time.Since(start), cause)
		}
		p.expectsEnd()
	})
}

func TestContextsDeadlineEndsTheWait(t *testing.T) {
	for _, ph := range phases {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			s := <-ph.start(ctx, conn, p)
			if !errors.Is(s.err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("%s: %v after %v", ph.name, s.err, time.Since(start))
			}
		})
	}
}

// A peer that does not read keeps our frame from getting out.
func TestPeerThatDoesNotReadRunsIntoTheTimeLimit(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		for _, ph := range []phase{
			{"sending the Request", nil, DefaultReplyTimeout, func(ctx context.Context, conn *simnet.Conn, _ *peer) <-chan started {
				return initiates(ctx, conn, Config{})
			}},
			{"sending the Reply", nil, DefaultReplyTimeout, func(ctx context.Context, conn *simnet.Conn, p *peer) <-chan started {
				done := responds(ctx, conn, Config{})
				p.says(frame(reqKey, 0x50, 2, 0, 0, 0, 0))
				return done
			}},
		} {
			t.Run(fmt.Sprintf("%s, cancelled %v", ph.name, cancelled), func(t *testing.T) {
				beside(t, simnet.Options{Buffer: 5}, func(t *testing.T, conn *simnet.Conn, p *peer) {
					start := time.Now()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					done := ph.start(ctx, conn, p)
					synctest.Wait()
					limit, want := ph.limit, os.ErrDeadlineExceeded
					if cancelled {
						cancel()
						limit, want = 0, context.Canceled
					}
					s := <-done
					if !errors.Is(s.err, want) || s.conn != nil || time.Since(start) != limit {
						t.Errorf("%v after %v; want %v after %v", s.err, time.Since(start), want, limit)
					}
				})
			})
		}
	}
}

func TestContextThatIsOverBeforehandStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for role, r := range map[Role]struct {
		start func(context.Context, net.Conn, Config) <-chan started
		peer  []byte // what the peer has said already
	}{
		Initiator: {initiates, frame(repKey, 0x40, 1)},
		Responder: {responds, frame(reqKey, 0x40, 1)},
	} {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			p.says(r.peer)
			if s := <-r.start(ctx, conn, Config{}); !errors.Is(s.err, context.Canceled) {
				t.Errorf("%v: %v", role, s.err)
			}
			p.expectsEnd()
		})
	}
}

// The limits of start-up end with it.
func TestTimeLimitsDoNotOutliveStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := simnet.Pipe(simnet.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		i, r := initiates(ctx, a, Config{}), responds(ctx, b, Config{})
		ini, res := <-i, <-r
		if ini.err != nil || res.err != nil {
			t.Fatal(ini.err, res.err)
		}
		cancel()
		time.Sleep(time.Hour)
		in := receives(res.conn)
		post(t, ini.conn, "after an hour")
		flush(t, ini.conn)
		if got, err := in.now(); len(got) != 1 || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		_ = ini.conn.Close()
		_ = res.conn.Close()
	})
}

func TestReadyToReceiveThatNeverComes(t *testing.T) {
	request := frame(reqKey, 0x50, 2, 0xC0, 1, 0xC0, 1)
	rtr := fpdus(&Framer{CRC: true}, []byte{})
	for said := range rtr {
		for _, limit := range []time.Duration{0, time.Minute} {
			beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
				c, _ := responded(t, conn, p, Config{FirstFPDUTimeout: limit}, request)
				start := time.Now()
				p.says(rtr[:said])
				gated := make(chan error)
				go func() {
					post(t, c, "held back")
					_, err := c.Flush(true)
					gated <- err
				}()
				err := c.Receive(each(func([]byte, uint64) { t.Error("a ULPDU was passed") }))
				want := limit
				if limit == 0 {
					want = DefaultFirstFPDUTimeout
				}
				for what, err := range map[string]error{"Receive": err, "Flush": <-gated} {
					if e := wantCode(t, what, err, CodeConnectionLost); e.Clause != "RFC 6581 §9.2" {
						t.Errorf("%s: %v", what, err)
					}
				}
				if time.Since(start) != want {
					t.Errorf("after %v; want %v", time.Since(start), want)
				}
				p.expectsEnd()
			})
		}
	}
}

func TestReadyToReceiveInTimeLiftsTheLimit(t *testing.T) {
	beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
		c, _ := responded(t, conn, p, Config{}, frame(reqKey, 0x50, 2, 0xC0, 1, 0xC0, 1))
		in := receives(c)
		time.Sleep(DefaultFirstFPDUTimeout - 1)
		p.says(fpdus(&Framer{CRC: true}, []byte{}))
		time.Sleep(time.Hour)
		if got, err := in.now(); len(got) != 1 || got[0] != "" || err != nil {
			t.Errorf("%q, %v; want one empty ULPDU", got, err)
		}
	})
}

func TestClientMayTakeItsTimeWithTheFirstFPDU(t *testing.T) {
	for _, request := range [][]byte{frame(reqKey, 0x50, 2, 0, 1, 0, 1), frame(reqKey, 0x40, 1)} {
		beside(t, simnet.Options{}, func(t *testing.T, conn *simnet.Conn, p *peer) {
			c, _ := responded(t, conn, p, Config{}, request)
			in := receives(c)
			time.Sleep(24 * time.Hour)
			p.says(fpdus(&Framer{CRC: true}, []byte("late")))
			if got, err := in.now(); len(got) != 1 || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Whatever happens to the stream, and at which byte, both sides come to an end.
func TestStartupOverABrokenStreamEnds(t *testing.T) {
	request, reply := 20+4+3, 20+4+3
	for name, fault := range map[string]func(at int) simnet.Faults{
		"cut":     func(at int) simnet.Faults { return simnet.Faults{CutAt: int64(at)} },
		"stall":   func(at int) simnet.Faults { return simnet.Faults{StallAt: int64(at)} },
		"corrupt": func(at int) simnet.Faults { return simnet.Faults{Seed: uint64(at), CorruptAt: int64(at)} },
	} {
		t.Run(name, func(t *testing.T) {
			for at := 1; at <= request+reply; at++ {
				synctest.Test(t, func(t *testing.T) {
					var o simnet.Options
					if at <= request {
						o.AB = fault(at)
					} else {
						o.BA = fault(at - request)
					}
					o.AB.ShortWrites, o.BA.ShortReads = true, true
					a, b := simnet.Pipe(o)
					start := time.Now()
					i := initiates(t.Context(), a, Config{IRD: 1, ORD: 1, PrivateData: []byte("abc")})
					r := responds(t.Context(), b, Config{IRD: 1, ORD: 1, PrivateData: []byte("abc")})
					ini, res := <-i, <-r
					if ini.err == nil && name != "corrupt" {
						t.Errorf("octet %d: the Initiator noticed nothing", at)
					}
					if res.err == nil && at <= request && name != "corrupt" {
						t.Errorf("octet %d: the Responder noticed nothing", at)
					}
					if d := time.Since(start); d > DefaultReplyTimeout || name == "cut" && d != 0 {
						t.Errorf("octet %d: after %v", at, d)
					}
					for _, s := range []started{ini, res} {
						if s.conn != nil {
							_ = s.conn.Close()
						}
					}
					_ = a.Close() // a rejection leaves it open
				})
			}
		})
	}
}
