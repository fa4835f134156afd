package rnic_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/internal/test/tshark"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// recorded runs f with a pair that records on both sides and returns the files,
// and what the queue pairs have counted of both directions.
func recorded(t *testing.T, o rnictest.Options, f func(*testing.T, *rnictest.Pair)) (files map[string][]byte, counts map[string]rdmap.Stats) {
	t.Helper()
	buffers := map[string]*bytes.Buffer{"A": {}, "B": {}}
	counts = map[string]rdmap.Stats{}
	device := o.Device
	o.Device = func(side string, cfg *rnic.Config) {
		cfg.Record = buffers[side]
		if device != nil {
			device(side, cfg)
		}
	}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		f(t, p)
		synctest.Wait()
		for _, s := range []*rnictest.Side{p.A, p.B} {
			counts[s.Name] = s.QP.Counters()
		}
	}, o)
	files = map[string][]byte{}
	for side, b := range buffers {
		files[side] = b.Bytes()
	}
	return files, counts
}

// both returns how many messages there were of one kind, in both directions.
func both(s rdmap.Stats, op rdmap.Opcode) int {
	return int(s.Sent[op].Messages + s.Received[op].Messages)
}

// A recording holds all messages, and is what Wireshark takes for iWARP without
// complaint.
func TestRecordingIsDecodedByOthers(t *testing.T) {
	everything := func(t *testing.T, p *rnictest.Pair) {
		e := &exerciser{T: t, Pair: p}
		for _, size := range []int{0, 1, 17, 1434, 5000, 100_000} {
			e.run(size)
		}
		e.memory()
		if err := p.A.QP.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
	}
	fails := func(t *testing.T, p *rnictest.Pair) {
		p.A.Send(t, rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{p.A.Register(t, make([]byte, 8), rnic.LocalWrite).SGE(0, 8)}, Remote: rnic.Remote{STag: 5}})
		wantTerminate(t, p.A.Device, rdmap.CodeInvalidSTag)
	}
	for _, tt := range []struct {
		name string
		mpa  mpa.Config
		run  func(*testing.T, *rnictest.Pair)
	}{
		{"everything", mpa.Config{}, everything},
		{"without CRC", mpa.Config{CRC: mpa.CRCOff}, everything},
		{"with markers", mpa.Config{Markers: true}, everything},
		{"revision 1", mpa.Config{Revision: mpa.Revision1}, everything},
		{"peer-to-peer", mpa.Config{PeerToPeer: true, RTR: mpa.RTRRead}, everything},
		{"Terminate", mpa.Config{}, fails},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, counts := recorded(t, rnictest.Options{Device: func(_ string, cfg *rnic.Config) { cfg.MPA = tt.mpa }}, tt.run)
			for side, file := range files {
				t.Run("side "+side+" in urnic", func(t *testing.T) { judgeByDissector(t, file, counts[side]) })
				if tt.mpa.Markers || side == "B" && tt.name != "everything" {
					// Wireshark 4.0 takes a marker between two FPDUs for one of
					// the first, and loses its way. The two sides differ little.
					continue
				}
				t.Run("side "+side+" in Wireshark", func(t *testing.T) { judgeByTshark(t, file, counts[side], tt.mpa.CRC != mpa.CRCOff) })
			}
		})
	}
}

func judgeByTshark(t *testing.T, file []byte, counts rdmap.Stats, crc bool) {
	strict := []string{"-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"}
	bad := "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0 || ip.checksum.status == 0 || _ws.expert.severity == error"
	if lines := tshark.LinesOf(t, file, append(strict, "-Y", bad)...); len(lines) > 0 {
		t.Errorf("tshark complains of\n%s", strings.Join(lines, "\n"))
	}
	messages, fpdus := map[rdmap.Opcode]int{}, 0
	for _, line := range tshark.LinesOf(t, file, "-Y", "iwarp_rdma.opcode", "-T", "fields", "-e", "iwarp_rdma.opcode", "-e", "iwarp_ddp.last_flag") {
		ops, last, _ := strings.Cut(line, "\t")
		flags := strings.Split(last, ",")
		for i, v := range strings.Split(ops, ",") {
			var op uint8
			if _, err := fmt.Sscanf(v, "0x%x", &op); err != nil || i >= len(flags) {
				t.Fatalf("line %q: %v", line, err)
			}
			fpdus++
			if flags[i] == "True" || flags[i] == "1" {
				messages[rdmap.Opcode(op)]++
			}
		}
	}
	for op := range rdmap.Opcode(len(counts.Sent)) {
		if want := both(counts, op); messages[op] != want {
			t.Errorf("tshark sees %d of %v; want %d", messages[op], op, want)
		}
	}
	details := strings.Join(tshark.LinesOf(t, file, append(strict, "-O", "iwarp_mpa")...), "\n")
	if good := strings.Count(details, "(Good CRC32)"); crc && good != fpdus {
		t.Errorf("tshark finds %d of %d CRCs good", good, fpdus)
	}
}

func judgeByDissector(t *testing.T, file []byte, counts rdmap.Stats) {
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	messages := map[rdmap.Opcode]int{}
	_, err = dissect.Analyze(t.Context(), r, func(e *dissect.Event) error {
		if e.Violation != nil {
			t.Errorf("violation: %+v", e.Violation)
		}
		if e.Message != nil {
			messages[e.Message.Op]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for op := range rdmap.Opcode(len(counts.Sent)) {
		if want := both(counts, op); messages[op] != want {
			t.Errorf("the recording has %d of %v; want %d", messages[op], op, want)
		}
	}
}

var errDisk = errors.New("no space left")

// A brokenWriter fails after so many bytes.
type brokenWriter struct{ after int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

// A recording that can't be written does not disturb what it records; the error
// comes with Close.
func TestRecordingThatFailsDisturbsNothing(t *testing.T) {
	o := rnictest.Options{Device: func(side string, cfg *rnic.Config) {
		if side == "A" {
			cfg.Record = &brokenWriter{after: 1000}
		}
	}}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		e := &exerciser{T: t, Pair: p}
		e.run(200_000)
		wantRefused(t, "close", p.A.Device.Close(), errDisk, "record")
		if err := p.A.Device.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	}, o)
}

func TestRecordingThatCannotBeBegunOpensNoDevice(t *testing.T) {
	d, err := rnic.Open(rnic.Config{Record: &brokenWriter{}})
	wantRefused(t, "open", err, errDisk, "record")
	if d != nil {
		t.Error("a device was opened")
	}
}
