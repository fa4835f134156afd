package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/capture"
	"urnic/ulp/rx/wire"
)

// A recorded is a packet of a capture.
type recorded struct {
	wire.Header
	body []byte
	at   Time
}

// A streamKey is one direction of a call.
type streamKey struct {
	epoch, cid, call uint32
	reply            bool
}

// A stream is the data of one direction, and the acknowledgements of the other side, in the
// order of the capture.
type stream struct {
	key     streamKey
	packets []recorded
	data    int
}

// streams returns what is in a capture.
func streams(t *testing.T, file string) []*stream {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := capture.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []*stream
	byKey := map[streamKey]*stream{}
	var begin time.Time
	take := func(h wire.Header, body []byte, at Time) {
		k := streamKey{h.Epoch, h.CID, h.Call, h.FromClient() != (h.Type == wire.TypeData)}
		s := byKey[k]
		if s == nil {
			s = &stream{key: k}
			byKey[k] = s
			all = append(all, s)
		}
		s.packets = append(s.packets, recorded{h, slices.Clone(body), at})
		if h.Type == wire.TypeData {
			s.data++
		}
	}
	err = capture.ReadDatagrams(t.Context(), r, func(a capture.At, d *capture.Datagram) error {
		h, err := wire.ParseHeader(d.Data)
		if err != nil || h.Call == 0 {
			return nil //nolint:nilerr // it is none of a call
		}
		if begin.IsZero() {
			begin = a.Time
		}
		at := a.Time.Sub(begin) + time.Second
		body := d.Data[wire.HeaderLen:]
		switch h.Type {
		case wire.TypeData:
			p := wire.SplitData(h, body)
			for h, body, ok := p.Next(); ok; h, body, ok = p.Next() {
				take(h, body, at)
			}
		case wire.TypeAck:
			take(h, body, at)
		default:
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// recordings calls each with the streams of the captures of real peers, but those that a prober
// has made.
func recordings(t *testing.T, each func(t *testing.T, s *stream)) {
	t.Helper()
	files, err := filepath.Glob("../rxflow/testdata/captures/*.pcap.gz")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pcap.gz")
		if strings.HasPrefix(name, "probe-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, s := range streams(t, file) {
				if s.data > 0 {
					each(t, s)
				}
			}
		})
	}
}

// A machine that is given what a real receiver was given holds all that this one has
// acknowledged, and asks for no more: nothing is outside its window, holes are where that one
// has seen them, and what asks for an acknowledgement gets one.
func TestReceiverOfRecordedCalls(t *testing.T) {
	data, acks := 0, 0
	recordings(t, func(t *testing.T, s *stream) {
		r := newRaw(t, Config{Window: 64, Epoch: s.key.epoch, DeadTime: 10 * time.Hour})
		var k *Call
		if s.key.reply {
			r.nextID = s.key.cid &^ 3
			c, err := r.Dial(0, there, testService, DialConfig{})
			if err != nil {
				t.Fatal(err)
			}
			for k = r.begin(c); uint32(k.channel) != s.key.cid&3; {
				k = r.begin(c)
			}
			k.number = s.key.call
			r.write(k, 4, true)
		} else if err := r.Serve(Service{ID: testService}); err != nil {
			t.Fatal(err)
		}
		r.take()
		seen := map[uint32]bool{}
		for i, p := range s.packets {
			if k == nil && len(r.calls) > 0 {
				k = r.calls[0]
			}
			if p.Type == wire.TypeAck {
				if k == nil {
					continue
				}
				acks++
				a, err := wire.ParseAck(p.body)
				if err != nil {
					t.Errorf("packet %d: %v", i, err)
					continue
				}
				if a.First > k.in.have {
					t.Errorf("%+v: %v is acknowledged before %d has come here", s.key, &a, k.in.have)
				}
				for j, v := range a.Acks {
					seq := a.First + uint32(j)
					if wire.Held(v) && !seen[seq] {
						t.Errorf("%+v: %v holds %d, which has not come", s.key, &a, seq)
					}
				}
				continue
			}
			data++
			if p.at > r.at {
				r.pass(p.at - r.at)
			}
			r.take()
			h := p.Header
			h.Security, h.Service, h.Checksum = 0, testService, 0
			was := r.stats.Duplicates
			hole := k != nil && p.Seq > k.in.have
			r.says(h, p.body)
			if seen[p.Seq] != (r.stats.Duplicates > was) {
				t.Errorf("%+v: packet %d has come before: %v; the machine differs", s.key, p.Seq, seen[p.Seq])
			}
			seen[p.Seq] = true
			if p.Flags&wire.FlagRequestAck != 0 || hole {
				found := false
				for _, q := range r.sent {
					if a, err := wire.ParseAck(q.body); err == nil && q.Type == wire.TypeAck && a.Serial == p.Serial {
						found = found || !hole || a.Reason == wire.ReasonOutOfSequence || a.Reason == wire.ReasonRequested || a.Reason == wire.ReasonDuplicate
					}
				}
				if !found {
					t.Errorf("%+v: packet %d is not acknowledged at once: %v", s.key, p.Seq, headers(r.sent))
				}
			}
			if k == nil && len(r.calls) > 0 {
				k = r.calls[0]
			}
			if k != nil && k.err == nil {
				r.read(k) //nolint:errcheck // as much as there is
			}
		}
		if k == nil {
			return
		}
		d := r.stats.Drops
		if k.err != nil || d.Window+d.Seq+d.NoSpace+d.Type != 0 {
			t.Errorf("%+v: %v, dropped: %+v", s.key, k.err, d)
		}
	})
	t.Logf("%d data packets, %d acknowledgements", data, acks)
	if data < 1000 || acks < 300 {
		t.Error("too few")
	}
}

// A machine that has sent what a real sender has, and is given the acknowledgements that this
// one was given, takes each of them, follows the windows, measures the same round trips, and
// thinks of no packet that was sent again later that the peer has it.
func TestSenderOfRecordedCalls(t *testing.T) {
	samples, again, pushed, windows := 0, 0, 0, 0
	recordings(t, func(t *testing.T, s *stream) {
		r := newServer(t, Config{}, Service{})
		k := r.served()
		r.take()
		k.c.limits.dead = time.Hour
		o := &k.out
		sent := map[uint32]recorded{} // by serial number
		lastOf := map[uint32]uint32{} // serial number of the newest copy
		hard, newest := uint32(1), uint32(0)
		for _, p := range s.packets {
			r.at = max(r.at, p.at)
			r.now = r.at
			if p.Type == wire.TypeData {
				if p.Seq < o.packets.base {
					again++ // for an acknowledgement that was lost, or is under way
					continue
				}
				for o.packets.end() <= p.Seq {
					o.packets.extend(o.packets.end())
				}
				q := o.packets.at(p.Seq)
				_, before := lastOf[p.Seq]
				if before {
					again++
					if q.held {
						t.Errorf("%+v: %d is sent again, and counts as held", s.key, p.Seq)
					}
				} else {
					q.body = r.pool.get(len(p.body))
					q.first = send{p.Serial, r.at}
				}
				q.again = send{p.Serial, r.at}
				o.unmark(q)
				o.next = max(o.next, p.Seq+1)
				sent[p.Serial], lastOf[p.Seq] = p, p.Serial
				continue
			}
			a, err := wire.ParseAck(p.body)
			if err != nil {
				t.Errorf("%+v: %v", s.key, err)
				continue
			}
			want := r.stats.RTT.Samples
			if q, ok := sent[a.Serial]; ok && a.Serial != 0 && a.Reason != wire.ReasonDelay && q.Seq >= o.packets.base && a.First >= o.packets.base {
				if o.packets.has(q.Seq) {
					if c := o.packets.at(q.Seq); c.first.serial == a.Serial || c.again.serial == a.Serial {
						want++
					}
				}
			}
			drops, before := r.stats.Drops.Ack, r.stats.RTT
			h := p.Header
			h.CID, h.Call, h.Epoch, h.Flags = testCID, 1, testEpoch, h.Flags|wire.FlagClient
			k.acked(&h, p.body)
			k.out.timeoutAt = 0 // what is sent is the recording's matter
			late := h.Serial < newest
			newest = max(newest, h.Serial)
			if r.stats.Drops.Ack != drops && a.First >= hard && !late {
				t.Errorf("%+v: %v is dropped; base %d, next %d", s.key, &a, o.packets.base, o.next)
				continue
			}
			hard = max(hard, a.First)
			if r.stats.Drops.Ack != drops {
				continue
			}
			if r.stats.RTT.Samples != want {
				t.Errorf("%+v: %v gives %d samples; want %d", s.key, &a, r.stats.RTT.Samples-before.Samples, want-before.Samples)
			} else if want > before.Samples {
				samples++
				if got := r.stats.RTT.Total - before.Total; got != r.at-sent[a.Serial].at {
					t.Errorf("%+v: %v gives %v; want %v", s.key, &a, got, r.at-sent[a.Serial].at)
				}
			}
			if o.packets.base != max(a.First, 1) || a.Trailer.Words >= 4 && o.peerWindow != a.Trailer.Window {
				t.Errorf("%+v: %v gives base %d, window %d", s.key, &a, o.packets.base, o.peerWindow)
			}
			windows++
			pushed += o.resends
		}
	})
	t.Logf("%d samples, %d packets sent again, %d that the machine would send again, %d windows", samples, again, pushed, windows)
	if samples < 100 || again == 0 || windows < 300 {
		t.Error("too few")
	}
}
