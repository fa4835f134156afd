package rendezvous

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"urnic/internal/test/selfcopy"
	"urnic/mpa"
	"urnic/rnic"
)

// nobody is a second user.
const nobody = 65534

// needsRoot skips a test that wants root, or fails it where all tests have to run.
func needsRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("this needs root, " + why)
	}
	t.Skip("this needs root, " + why)
}

// A realQP is a queue pair of a matchmaker that uses TCP.
type realQP struct {
	m    *Matchmaker
	num  uint32
	psn  uint32
	ep   *Endpoint
	qp   *rnic.QP
	cq   *rnic.CQ
	done chan error
}

func newReal(t *testing.T, psn uint32, change func(*Config)) *realQP {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Device: dev}
	change(&cfg)
	r := &realQP{m: New(cfg), psn: psn, done: make(chan error, 1)}
	t.Cleanup(func() {
		if err := errors.Join(r.m.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := r.m.Bind(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.m.Listen(); err != nil {
		t.Fatal(err)
	}
	domain, err := dev.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	if r.cq, err = dev.CreateCQ(rnic.CQAttr{}); err != nil {
		t.Fatal(err)
	}
	if r.qp, err = domain.CreateQP(rnic.QPAttr{SendCQ: r.cq, RecvCQ: r.cq}); err != nil {
		t.Fatal(err)
	}
	r.num = r.m.Slot()<<IndexBits | 1
	if r.ep, err = r.m.Endpoint(r.num, r.qp); err != nil {
		t.Fatal(err)
	}
	return r
}

// up names the peer, which is at an address, and is ready to send.
func (r *realQP) up(t *testing.T, to *realQP, from, at netip.Addr) {
	t.Helper()
	if err := r.ep.Connect(Peer{QPN: to.num, PSN: to.psn, Addr: at, From: from}, func(err error) { r.done <- err }); err != nil {
		t.Fatal(err)
	}
	r.ep.Ready(r.psn, 0, 0)
}

// holds waits until so many requests wait at a matchmaker.
func (r *realQP) holds(t *testing.T, n int) {
	t.Helper()
	for {
		r.m.mu.Lock()
		held := len(r.m.held.all)
		r.m.mu.Unlock()
		if held == n {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d requests are held; want %d", held, n)
		}
		runtime.Gosched()
	}
}

// wantTogether checks that two queue pairs are connected with each other.
func wantTogether(t *testing.T, a, b *realQP) {
	t.Helper()
	for _, r := range []*realQP{a, b} {
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range [][2]*realQP{{a, b}, {b, a}} {
		if err := d[1].qp.PostRecv(rnic.RecvWR{ID: 1}); err != nil {
			t.Fatal(err)
		}
		if err := d[0].qp.PostSend(rnic.SendWR{ID: 2, Op: rnic.OpSend}); err != nil {
			t.Fatal(err)
		}
		for _, r := range d {
			var wcs [1]rnic.WC
			if n, err := r.cq.Wait(t.Context(), wcs[:]); n != 1 || err != nil || wcs[0].Status != rnic.StatusSuccess {
				t.Fatalf("completion: %d, %v, %+v", n, err, wcs[0])
			}
		}
	}
}

// askFrame returns an MPA Request of a rendezvous.
func askFrame(msg Message) ([]byte, error) {
	data, err := msg.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	block, err := mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRAll}.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	f := mpa.Frame{Revision: mpa.Revision2, CRC: true, Enhanced: true, PrivateData: append(block, data...)}
	return f.AppendBinary(nil)
}

// accepted reads what comes of a request, and reports whether it is a Reply that
// accepts.
func accepted(c io.Reader) bool {
	b, _ := io.ReadAll(io.LimitReader(c, 56)) // nothing, or all of the Reply
	f, _, err := mpa.ParseFrame(b)
	return err == nil && !f.Rejected
}

// asUser is the environment variable that makes this test a program of another user.
const asUser = "URNIC_TEST_ASK"

// TestUserProgram asks for a connection, as asUser says, and tells what comes of it.
func TestUserProgram(t *testing.T) {
	var at string
	var msg Message
	if n, _ := fmt.Sscan(os.Getenv(asUser), &at, &msg.From, &msg.To, &msg.PSN); n != 4 {
		return // this is not that program
	}
	msg.Kind, msg.HasPSN = Ask, true
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	b, err := askFrame(msg)
	if err == nil {
		_, err = c.Write(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("\nanswered:", accepted(c))
}

// A second user of the host, who asks before RTR and after, gets nothing without the PSN,
// and the queue pairs of the first user find each other, by whatever address of the host.
func TestSecondUserIsNotThePeer(t *testing.T) {
	needsRoot(t, "to be two users")
	_, bin := selfcopy.Dir(t)
	for _, tt := range []struct {
		name     string
		psn, try uint32
		at       string // of the peers; "" is no GID
		want     bool
	}{
		{"no GID", 0, 0, "", false},
		{"PSN 0", 0, 0, "127.0.0.1", false},
		{"PSN 0, another address", 0, 0, "127.0.0.3", false},
		{"PSN 0, IPv6", 0, 0, "::1", false},
		{"wrong PSN", 0xabcdef, 0xabcdee, "127.0.0.1", false},
		{"right PSN", 0xabcdef, 0xabcdef, "127.0.0.1", true},
	} {
		for _, before := range []bool{true, false} {
			t.Run(tt.name, func(t *testing.T) {
				a, b := newReal(t, 5, func(*Config) {}), newReal(t, tt.psn, func(*Config) {})
				if a.num < b.num { // the one that waits for a call is to be the one that is asked
					a, b = b, a
					a.psn, b.psn = b.psn, a.psn
				}
				var from, at netip.Addr
				if tt.at != "" {
					at = netip.MustParseAddr(tt.at)
					from = at
				}
				name := func() { a.up(t, b, from, at) }
				if !before {
					name()
				}
				port, _ := a.m.cfg.port(a.num)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cmd := exec.CommandContext(ctx, bin, "-test.run=^TestUserProgram$")
				cmd.Dir = "/"
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=127.0.0.1:%d %d %d %d", asUser, port, b.num, a.num, tt.try))
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = cmd.Wait() }() // it may have been killed
				if before {
					a.holds(t, 1)
					name()
				}
				if tt.want {
					if err := <-a.done; err != nil {
						t.Fatal(err)
					}
				} else {
					a.holds(t, 1)
					b.up(t, a, from, at)
					wantTogether(t, a, b)
					a.ep.Close() // which ends the stranger's waiting
				}
				said := ""
				for s := bufio.NewScanner(out); s.Scan(); {
					if l := s.Text(); strings.HasPrefix(l, "answered") {
						said = l
					}
				}
				if want := fmt.Sprint("answered: ", tt.want); said != want {
					t.Errorf("the second user says %q; want %q", said, want)
				}
			})
		}
	}
}
