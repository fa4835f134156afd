//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"urnic/mpa"
	"urnic/rnic"
)

func TestSIWRejectsWithPrivateData(t *testing.T) {
	u := newULP(t, newDevice(t))
	p := theGuest.start(t, fmt.Sprintf("peerops server -a 10.0.2.15 -p %d -j -d 6e6f207468616e6b73", portOps))
	p.expect("listening")
	err := u.qp.Connect(t.Context(), theGuest.address(portOps), rnic.ConnParam{PrivateData: []byte("please")})
	var rejected *mpa.RejectedError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != "no thanks" {
		t.Errorf("connect: %v", err)
	}
	if line := p.expect("cm event=CONNECT_REQUEST"); !strings.Contains(line, "private=706c65617365") {
		t.Errorf("siw got other private data: %s", line)
	}
	p.wait()
	if s := u.qp.State(); s != rnic.Idle {
		t.Errorf("the queue pair is in state %v", s)
	}
	_ = u.dev.Close()
	if s := checkRecording(t, recording(t), server); !s.Connections[0].MPA.Rejected {
		t.Error("the recording has no rejection")
	}
}

func TestWeRejectSIWWithPrivateData(t *testing.T) {
	dev := newDevice(t)
	l, err := dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := theGuest.start(t, fmt.Sprintf("peerops client -a %s -p %d -d 706c65617365 wait", hostOfGuest, l.Addr().(*net.TCPAddr).Port))
	req, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if string(req.PrivateData()) != "please" {
		t.Errorf("siw's private data is %q", req.PrivateData())
	}
	if err := req.Reject(t.Context(), []byte("not today")); err != nil {
		t.Fatal(err)
	}
	if line := p.expect("cm event=REJECTED"); !strings.Contains(line, "private=6e6f7420746f646179") {
		t.Errorf("siw got other private data: %s", line)
	}
	p.end()
	_ = dev.Close()
	if s := checkRecording(t, recording(t), client); !s.Connections[0].MPA.Rejected {
		t.Error("the recording has no rejection")
	}
}

func TestNobodyListensAtSIW(t *testing.T) {
	u := newULP(t, newDevice(t))
	if err := u.qp.Connect(t.Context(), theGuest.address(portTools), rnic.ConnParam{}); err == nil {
		t.Error("a connection to a port nobody listens on was established")
	}
	_ = u.dev.Close()
}

// An end without warning of siw's process, in the midst of Writes.
func TestAbruptEndOfSIW(t *testing.T) {
	for _, op := range []string{"busy-die", "die", "err", "busy-close"} {
		t.Run(op, func(t *testing.T) {
			withSIW(t, client, func(t testing.TB) {
				u, _, p := serve(t, op, 1, 4096)
				// A FIN in the middle of an FPDU, a Terminate, a graceful end: what siw
				// makes of it depends on where it was.
				u.event(rnic.EventLost, rnic.EventTerminateReceived, rnic.EventCloseComplete, rnic.EventBadLLPClose)
				wc := u.next()
				if wc.Status != rnic.StatusFlushed {
					t.Errorf("our receive ended with %v", wc.Status)
				}
				p.end()
				if err := u.qp.Close(); err != nil {
					t.Error(err)
				}
				wantNothingHeld(t, u)
				_ = u.dev.Close()
				wantWellFormed(t, recording(t))
			})
		})
	}
	// The guest still works.
	u, _, p := serve(t, "send 64", 1, 4096)
	if wc := u.next(); wc.Status != rnic.StatusSuccess {
		t.Errorf("a Send afterwards: %v", wc.Status)
	}
	p.wait()
}

// wantNothingHeld checks that a queue pair has left nothing behind.
func wantNothingHeld(t testing.TB, u *ulp) {
	t.Helper()
	for _, o := range []interface{ Close() error }{u.cq} {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	for r, n := range held(u.dev) {
		t.Errorf("%d %s are still held", n, r)
	}
}

// An end without warning of ours.
func TestAbruptEndOfOurs(t *testing.T) {
	withSIW(t, server, func(t testing.TB) {
		u, regions, p := atSIW(t, "-c 2", mpa.Config{})
		mr := u.register(make([]byte, 1<<20), 0)
		for range 20 {
			u.post(rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, 1<<20)}, Remote: regions[regionRW].remote})
		}
		u.qp.Abort()
		flushed := 0
		wcs := make([]rnic.WC, 64)
		for _, wc := range wcs[:u.cq.Poll(wcs)] {
			if wc.Status == rnic.StatusFlushed {
				flushed++
			}
		}
		if flushed == 0 || u.qp.State() != rnic.Error {
			t.Errorf("%d requests were flushed, state %v", flushed, u.qp.State())
		}
		p.expect("end connection=1")
		// siw serves the next one.
		if err := u.qp.Reset(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := u.qp.Connect(ctx, theGuest.address(portOps), rnic.ConnParam{MPA: settled(mpa.Config{})}); err != nil {
			t.Fatal(err)
		}
		u.do(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: []byte("once more")})
		u.disconnect()
		p.wait()
	})
}
