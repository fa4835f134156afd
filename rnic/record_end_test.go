package rnic_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/internal/test/tshark"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// endings are ways in which a connection ends to which a device is a Responder,
// and what its recording shows from the peer's first Send on.
var endings = []struct {
	name string
	play func(w *world, s *rnictest.Side, h *peer)
	want []string
}{
	{"a graceful close by the device", func(_ *world, s *rnictest.Side, h *peer) {
		go func() { _ = s.QP.Disconnect(context.Background()) }()
		synctest.Wait()
		h.close()
	}, []string{"server FIN", "client FIN"}},
	{"a graceful close by the peer", func(_ *world, _ *rnictest.Side, h *peer) {
		h.closeWrite()
		synctest.Wait()
	}, []string{"client FIN", "server FIN"}},
	{"a reset by the device", func(_ *world, s *rnictest.Side, _ *peer) { s.QP.Abort() }, []string{"server RST"}},
	{"a reset by the peer", func(_ *world, _ *rnictest.Side, h *peer) { h.reset() }, []string{"client RST"}},
	{"garbage, until the device has had enough", func(w *world, s *rnictest.Side, h *peer) {
		h.write(bytes.Repeat([]byte{0xFF, 1, 2}, 5000))
		synctest.Wait()
		s.QP.Abort()
	}, []string{"15000 octets", "server RST"}},
	{"a cut FPDU", func(_ *world, _ *rnictest.Side, h *peer) {
		h.write(h.fpdu(sendSeg("hello"))[:7])
		h.closeWrite()
		synctest.Wait()
	}, []string{"7 octets", "client FIN", "server RST"}},
	{"a Terminate, and segments that come late", func(_ *world, _ *rnictest.Side, h *peer) {
		h.write(slices.Concat(h.fpdu(sendSeg(""), withQN(9)), h.fpdu(writeSeg(rnic.Remote{STag: 1}, []byte("at once")))))
		synctest.Wait()
		late := h.fpdu(writeSeg(rnic.Remote{STag: 2}, []byte("later")))
		h.write(late[:9])
		synctest.Wait()
		h.write(late[9:])
		synctest.Wait()
		h.closeWrite()
		synctest.Wait()
	}, []string{"client Send", "server Terminate", "server FIN", "client RDMA Write", "client RDMA Write", "client FIN"}}, // both are discarded, hence recorded, after the error is told
	{"the peer's Terminate", func(_ *world, _ *rnictest.Side, h *peer) {
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeInvalidSTag}))
		h.closeWrite()
		synctest.Wait()
	}, []string{"client Terminate", "server FIN", "client FIN"}},
}

// A recording tells why a stream ended: what the peer sent last, whole or not,
// and who closed or reset the connection.
func TestRecordingShowsHowAStreamEnds(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			var file bytes.Buffer
			inWorld(t, func(w *world) {
				file.Reset()
				s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Record = &file })
				h := w.peerOf(s, rnic.ConnParam{})
				s.Recv(w, receives(1, 3)...)
				h.send(sendSeg(""))
				tt.play(w, s, h)
			})
			if got := recordedEnd(t, file.Bytes()); !slices.Equal(got, tt.want) {
				t.Errorf("the recording shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			bad := "_ws.malformed || tcp.analysis.flags || _ws.expert.severity == error"
			if lines := tshark.LinesOf(t, file.Bytes(), "-Y", bad); len(lines) > 0 {
				t.Errorf("tshark complains of\n%s", strings.Join(lines, "\n"))
			}
		})
	}
}

// recordedEnd lists what a recording has behind the first Send.
func recordedEnd(t testing.TB, file []byte) (what []string) {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	result, err := dissect.Analyze(t.Context(), r, func(e *dissect.Event) error {
		switch {
		case e.Message != nil:
			if messages++; messages > 1 {
				what = append(what, fmt.Sprint(e.From, " ", e.Message.Op))
			}
		case e.Kind == dissect.KindClose:
			what = append(what, fmt.Sprint(e.From, " ", map[bool]string{true: "RST", false: "FIN"}[e.Reset]))
		}
		return nil
	})
	if err != nil || len(result.Connections) != 1 {
		t.Fatalf("%v; %d connections", err, len(result.Connections))
	}
	if n := result.Connections[0].Undecoded; n > 0 {
		what = slices.Insert(what, 0, fmt.Sprint(n, " octets"))
	}
	return what
}

// Each side's recording of the same connection says who closed first.
func TestBothRecordingsShowWhoClosedFirst(t *testing.T) {
	for _, who := range []string{"A", "B"} {
		files, _ := recorded(t, rnictest.Options{}, func(t *testing.T, p *rnictest.Pair) {
			p.A.Send(t, rnic.SendWR{Op: rnic.OpWrite})
			rnictest.Want(t, p.A.SendCQ, 0)
			synctest.Wait()
			q := map[string]*rnic.QP{"A": p.A.QP, "B": p.B.QP}[who]
			if err := q.Disconnect(t.Context()); err != nil {
				t.Error(err)
			}
		})
		want := map[string][]string{"A": {"client FIN", "server FIN"}, "B": {"server FIN", "client FIN"}}[who]
		for side, file := range files {
			if got := recordedEnd(t, file); !slices.Equal(got, want) {
				t.Errorf("%s disconnects; the recording of %s shows %q, want %q", who, side, got, want)
			}
		}
	}
}

// A device that has dialed records a reset too.
func TestRecordingOfAnInitiatorShowsAReset(t *testing.T) {
	for who, want := range map[string][]string{"A": {"client RST"}, "B": {"server RST"}} {
		files, _ := recorded(t, rnictest.Options{}, func(t *testing.T, p *rnictest.Pair) {
			p.A.Send(t, rnic.SendWR{Op: rnic.OpWrite})
			rnictest.Want(t, p.A.SendCQ, 0)
			synctest.Wait()
			map[string]*rnic.QP{"A": p.A.QP, "B": p.B.QP}[who].Abort()
			synctest.Wait()
		})
		if got := recordedEnd(t, files["A"]); !slices.Equal(got, want) {
			t.Errorf("%s aborts; the recording of the initiator shows %q, want %q", who, got, want)
		}
	}
}
