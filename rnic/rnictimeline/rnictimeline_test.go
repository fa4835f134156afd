package rnictimeline

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

var events = []Event{
	{Kind: PostedSend, Op: rnic.OpRead, QPN: 5, ID: 1 << 63, Length: 1 << 40, Messages: 3, Hidden: true, Time: time.Unix(0, 1_800_000_000_123_456_789)},
	{Kind: Polled, Op: rnic.OpRecv, QPN: 5, ID: 7, Messages: 2, Failed: true, Time: time.Unix(1, 0)},
	{Kind: Delivered, RDMAP: rdmap.OpImmediateSE, QPN: 1 << 23, Length: 8, Time: time.Unix(2, 0)},
	{Kind: LocalAddr, QPN: 1, Addr: netip.MustParseAddrPort("192.0.2.1:7174"), Time: time.Unix(3, 0)},
	{Kind: RemoteAddr, QPN: 1, Addr: netip.MustParseAddrPort("[2001:db8::1]:65535"), Time: time.Unix(4, 0)},
}

func TestEventsAreAsTheyWere(t *testing.T) {
	for _, want := range events {
		b := want.Append(nil)
		got, err := ParseEvent(b)
		if err != nil || len(b) != EventLen || !got.Time.Equal(want.Time) {
			t.Errorf("%+v: %d bytes, %v", want, len(b), err)
		}
		if got.Time = want.Time; got != want {
			t.Errorf("%+v; want %+v", got, want)
		}
	}
}

// Events come in the order of their times; a part of one at the end is left out, and other files are refused.
func TestReadEvents(t *testing.T) {
	b := append([]byte(nil), magic[:]...)
	for i := range events {
		b = events[i].Append(b)
	}
	list, err := ReadEvents(bytes.NewReader(b[:len(b)-1]))
	if err != nil || len(list) != len(events)-1 || list[0].Kind != Polled || list[len(list)-1].Kind != PostedSend {
		t.Errorf("%+v, %v", list, err)
	}
	b[7]++
	if _, err := ReadEvents(bytes.NewReader(b)); err == nil {
		t.Error("another version is read")
	}
	if _, err := ReadEvents(bytes.NewReader(append(append([]byte(nil), magic[:]...), make([]byte, EventLen)...))); err == nil {
		t.Error("an event of no kind is read")
	}
}

func FuzzParseEvent(f *testing.F) {
	for i := range events {
		f.Add(events[i].Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvent(b)
		if err != nil {
			return
		}
		again, err := ParseEvent(e.Append(nil))
		if err != nil || again != e {
			t.Errorf("%+v becomes %+v, %v", e, again, err)
		}
	})
}

// A recorder leaves the hooks of the program at work, and records no more after Close; nil records nothing.
func TestRecorder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var traced int
	var recorded bytes.Buffer
	recs := map[string]*Recorder{}
	p := rnictest.Connect(t, rnictest.Options{Device: func(name string, cfg *rnic.Config) {
		if name == "B" {
			return
		}
		cfg.Record, cfg.Trace = &recorded, func(rnic.Trace) { traced++ }
		r, err := Start(dir, cfg)
		if err != nil {
			t.Fatal(err)
		}
		recs[name] = r
	}})
	r := recs["A"]
	if err := r.PostSend(p.A.QP, rnic.SendWR{ID: 1, Op: rnic.OpWrite}); err != nil {
		t.Fatal(err)
	}
	var none *Recorder
	if err := none.PostSend(p.A.QP, rnic.SendWR{ID: 2, Op: rnic.OpWrite}); err != nil {
		t.Fatal(err)
	}
	rnictest.Want(t, p.A.SendCQ, 1)
	rnictest.Want(t, p.A.SendCQ, 2)
	if err := errors.Join(p.A.Device.Close(), r.Close(), r.Close(), none.Close(), none.Flush()); err != nil {
		t.Fatal(err)
	}
	r.Note(Event{Kind: Polled})
	if events, bytes := r.Left(); events != 1 || bytes != 0 {
		t.Errorf("%d events and %d bytes are left out", events, bytes)
	}
	names, _ := filepath.Glob(dir + "/*.pcapng")
	if len(names) != 1 || traced < 2 {
		t.Fatalf("%q, %d messages traced", names, traced)
	}
	packets, err := os.ReadFile(names[0])
	if err != nil || !bytes.Equal(packets, recorded.Bytes()) || len(packets) == 0 {
		t.Errorf("%d bytes, and %d for the program, %v", len(packets), recorded.Len(), err)
	}
	f, err := os.Open(strings.TrimSuffix(names[0], "pcapng") + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := ReadEvents(f)
	posted, addrs := 0, 0
	for _, e := range list {
		switch e.Kind {
		case PostedSend:
			posted++
		case LocalAddr, RemoteAddr:
			addrs++
		default:
		}
	}
	if err != nil || posted != 1 || addrs != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

// The recording ends with a whole Write, at its bound.
func TestRecordingIsBounded(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := &bounded{file: f, written: MostRecorded - 10}
	for _, n := range []int{8, 8, 1} {
		if got, err := b.Write(make([]byte, n)); got != n || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	}
	if info, err := f.Stat(); err != nil || info.Size() != 8 || b.left != 9 {
		t.Errorf("%d bytes written, %d left out, %v", info.Size(), b.left, err)
	}
}
