package machine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/ulp/rdp/wire"
)

// recorded are the captures of ../rdpflow/testdata, of an endpoint that others have written.
var recorded = []struct {
	file      string
	sequenced bool
	iss       uint32 // of the passive side
	hash      string // SHA-256 of the file that was sent
}{
	{"v1-sequenced-loss", true, 3783021270, "45e8a7941051fc7bf89eb3edec329ecf5b130c2bf9767e4930d9bb20b71b5608"},
	{"v2-unsequenced-loss-reorder", false, 2750691626, "b6ab151ed19e5d5f1d4b33ddb901868e90b53075facb1a5e9b6aba325d2f6670"},
}

// A recordedSegment is a datagram of a capture.
type recordedSegment struct {
	at   Time
	from bool // the active side
	data []byte
}

func readCapture(t *testing.T, name string) (all []recordedSegment) {
	t.Helper()
	f, err := os.Open("../rdpflow/testdata/" + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := capture.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var start time.Time
	err = capture.ReadDatagrams(context.Background(), r, func(at capture.At, d *capture.Datagram) error {
		if start.IsZero() {
			start = at.Time
		}
		all = append(all, recordedSegment{at.Time.Sub(start), d.Dst.Port() == wire.UDPPort, append([]byte(nil), d.Data...)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The machine in the place of the recorded passive side receives the file whole: from what the recorded
// active side has sent, losses, repetitions and delays included. It acknowledges no less than the
// recorded one does, and its answers have the form that others read.
func TestRecordedPeer(t *testing.T) {
	for _, tt := range recorded {
		m, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		m.iss = func(Name) uint32 { return tt.iss }
		all := readCapture(t, tt.file)
		var first wire.Header
		if _, err := first.Parse(all[0].data, nil); err != nil {
			t.Fatal(err)
		}
		l, err := m.Listen(ListenConfig{Port: first.Dest, Params: Params{Window: 32, MaxSegment: 1400, Sequenced: tt.sequenced, Keepalive: -1}})
		if err != nil {
			t.Fatal(err)
		}
		var file []byte
		var c *Conn
		var acked, ours uint32 // the last acknowledgements, recorded and sent here
		buf := make([]byte, 0, 2048)
		for _, s := range all {
			m.Advance(s.at)
			if !s.from {
				var h wire.Header
				if _, err := h.Parse(s.data, nil); err == nil {
					acked = h.Ack
				}
				continue
			}
			m.Receive(s.at, Path{Remote: there}, s.data)
			for b, _, ok := m.Pull(s.at, buf); ok; b, _, ok = m.Pull(s.at, buf) {
				var h wire.Header
				if _, err := h.Parse(b, nil); err != nil || h.Flags&wire.RST != 0 {
					t.Errorf("%s: it sends %v, %v", tt.file, &h, err)
				} else {
					ours = h.Ack
				}
			}
			if c == nil {
				c = l.Accept()
			}
			for c != nil {
				msg, err := c.Receive()
				if err != nil {
					break
				}
				part := msg.Data
				offset := len(file)
				if !tt.sequenced { // each message begins with its offset in the file
					offset, part = int(binary.BigEndian.Uint64(part)), part[8:]
				}
				if end := offset + len(part); end > len(file) {
					file = append(file, make([]byte, end-len(file))...)
				}
				copy(file[offset:], part)
			}
		}
		if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != tt.hash {
			t.Errorf("%s: %d bytes with the hash %x", tt.file, len(file), sum)
		}
		if c == nil || c.State() != CloseWait || !errors.Is(c.Err(), ErrReset) {
			t.Fatalf("%s: at the end %v", tt.file, c)
		}
		if s := c.Status(); less(ours, acked) && less(c.cur, acked) || s.Queued != 0 || m.Counters().Malformed != 0 {
			t.Errorf("%s: acknowledged up to %d; the recorded endpoint up to %d; %+v", tt.file, ours, acked, s)
		}
	}
}
