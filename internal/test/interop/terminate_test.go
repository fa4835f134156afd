//go:build interop

package interop

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
)

// What siw says of our errors. Its Terminate has layer and type swapped;
// Reason puts them right. Where siw deviates from the RFCs, want is what it says,
// and docs/interop-siw.md has the difference.
func TestSIWTerminatesForOurErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(u *ulp, r [numRegions]region)
		want rdmap.TermCode
	}{
		{"Write, bad STag", writeTo(regionRW, func(r *rnic.Remote) { r.STag ^= 0xFF00 }), 0x1100},
		{"Write, wrong key", writeTo(regionRW, func(r *rnic.Remote) { r.STag ^= 1 }), 0x1100},
		{"Write, out of bounds", writeTo(regionWriteOnly, func(r *rnic.Remote) { r.TO += 8 << 10 }), 0x1101},
		{"Write, before the region", writeTo(regionWriteOnly, func(r *rnic.Remote) { r.TO -= 4096 }), 0x1101},
		{"Write, across the end", writeTo(regionWriteOnly, func(r *rnic.Remote) { r.TO += 8<<10 - 32 }), 0x1101},
		{"Write, no rights", writeTo(regionReadOnly, nil), 0x1100},
		{"Write, other PD", writeTo(regionOtherPD, nil), 0x1102},
		{"Read, bad STag", readFrom(regionRW, func(r *rnic.Remote) { r.STag ^= 0xFF00 }), 0x0100},
		{"Read, out of bounds", readFrom(regionReadOnly, func(r *rnic.Remote) { r.TO += 8 << 10 }), 0x0101},
		{"Read, other PD", readFrom(regionOtherPD, nil), 0x0103},
		{"Send, no receive posted", func(u *ulp, _ [numRegions]region) {
			for range 12 {
				u.post(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagInline | rnic.FlagUnsignaled, Inline: []byte("more than there is room for")})
			}
		}, 0x1202},
		{"Send, too long", func(u *ulp, _ [numRegions]region) {
			mr := u.register(make([]byte, 8192), 0)
			u.post(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{mr.SGE(0, 8192)}})
		}, 0x1202},
		// siw knows neither Immediate Data nor atomics. It means 0x0206, unexpected
		// opcode; without headers that can't be told from MPA's code 6.
		{"Immediate Data", func(u *ulp, _ [numRegions]region) {
			u.post(rnic.SendWR{Op: rnic.OpImmediate, Flags: rnic.FlagUnsignaled})
		}, 0x2006},
		{"atomic", func(u *ulp, r [numRegions]region) {
			u.post(rnic.SendWR{Op: rnic.OpFetchAdd, Remote: r[regionRW].remote, Atomic: rnic.Atomic{Add: 1}})
		}, 0x2006},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withSIW(t, server, func(t testing.TB) {
				u, regions, p := atSIW(t, "-n 8 -s 4096", mpa.Config{})
				tt.do(u, regions)
				e := u.event(rnic.EventTerminateReceived)
				if got := e.Terminate.Reason(); got != tt.want {
					t.Errorf("siw says %v; want %v", e.Terminate, tt.want)
				}
				wantTerminated(t, u)
				p.wait()
				_ = u.dev.Close()
				checkRecording(t, recording(t), server)
			})
		})
	}
}

func writeTo(i int, change func(r *rnic.Remote)) func(*ulp, [numRegions]region) {
	return func(u *ulp, regions [numRegions]region) {
		remote := regions[i].remote
		if change != nil {
			change(&remote)
		}
		mr := u.register(make([]byte, 64), 0)
		u.post(rnic.SendWR{Op: rnic.OpWrite, Flags: rnic.FlagUnsignaled, SGL: []rnic.SGE{mr.SGE(0, 64)}, Remote: remote})
	}
}

func readFrom(i int, change func(r *rnic.Remote)) func(*ulp, [numRegions]region) {
	return func(u *ulp, regions [numRegions]region) {
		remote := regions[i].remote
		if change != nil {
			change(&remote)
		}
		mr := u.register(make([]byte, 64), rnic.LocalWrite)
		u.post(rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{mr.SGE(0, 64)}, Remote: remote})
	}
}

// wantTerminated checks that the stream has ended for the peer's Terminate, and
// that nothing is left of it.
func wantTerminated(t testing.TB, u *ulp) {
	t.Helper()
	if err := u.qp.Close(); err != nil {
		t.Error(err)
	}
	var peer *rdmap.PeerError
	if err := u.qp.Err(); !errors.As(err, &peer) {
		t.Errorf("the stream ended with %v", err)
	}
	wcs := make([]rnic.WC, 64)
	for _, wc := range wcs[:u.cq.Poll(wcs)] {
		if wc.Status == rnic.StatusSuccess {
			t.Errorf("a request completed with success: %+v", wc)
		}
	}
}

// What we say of siw's errors, as siw's program sees it.
func TestOurTerminatesForSIWsErrors(t *testing.T) {
	for _, tt := range []struct {
		op   string
		want rdmap.TermCode
	}{
		{"write-badkey", 0x1100},
		{"write-oob", 0x1101},
		{"write-before", 0x1101},
		{"write-cross", 0x1101},
		{"write-wrap", 0x1101}, // the TO is out of range before its sum wraps
		{"write-noperm", 0x1102},
		{"write-local", 0x1102},
		{"write-otherpd", 0x1102},
		{"read-badkey", 0x0100},
		{"read-oob", 0x0101},
		{"read-before", 0x0101},
		{"read-cross", 0x0101},
		{"read-wrap", 0x0101},
		{"read-noperm", 0x0102},
		{"read-local", 0x0102},
		{"read-otherpd", 0x0103},
		{"send-norecv", 0x1202},
		{"send-toolong", 0x1205},
		{"send-inv-badkey", 0x0100},
	} {
		t.Run(tt.op, func(t *testing.T) {
			withSIW(t, client, func(t testing.TB) { ourTerminate(t, tt.op, tt.want) })
		})
	}
}

// ourTerminate has siw make an error, for which our stream ends, and siw's program is told of our Terminate.
func ourTerminate(t testing.TB, op string, want rdmap.TermCode) {
	t.Helper()
	recvs := 0
	if strings.HasPrefix(op, "send-") && op != "send-norecv" {
		recvs = 1
	}
	u, r, p := serve(t, op, recvs, 4096)
	<-u.qp.Done()
	says(p, "terminate control=")
	var e *rdmap.Error
	if err := u.qp.Err(); !errors.As(err, &e) || e.Code != want {
		t.Errorf("our stream ended with %v; want %v", err, want)
	}
	out := p.end()
	for i, mem := range r.mem {
		if string(mem) != string(regionPattern(len(mem))) {
			t.Errorf("region %d was changed", i)
		}
	}
	_ = u.dev.Close()
	checkRecording(t, recording(t), client)
	if !strings.Contains(out, fmt.Sprintf("terminate control=%04x", uint16(want))) {
		t.Errorf("siw does not say that %v has come:\n%s", want, out)
	}
}

// says waits until a process has said something, or has ended.
func says(p *process, text string) {
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if strings.Contains(p.output(), text) {
			return
		}
		select {
		case <-changed:
		case <-p.done:
			return
		}
	}
}
