package wire

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// A part is one packet of a jumbogram.
type part struct {
	flags    Flags
	checksum uint16
	n        int // bytes
}

// jumbogram returns a header and the body of a datagram with these packets.
func jumbogram(parts ...part) (Header, []byte) {
	h := Header{
		Epoch: 1, CID: 4, Call: 2, Seq: 7, Serial: 20, Type: TypeData, Flags: parts[0].flags, UserStatus: 9,
		Security: 2, Checksum: parts[0].checksum, Service: 4,
	}
	var b []byte
	for i, p := range parts {
		if i > 0 {
			b = AppendJumboHeader(b, p.flags, p.checksum)
		}
		b = append(b, bytes.Repeat([]byte{byte('a' + i)}, p.n)...)
	}
	return h, b
}

// all returns the packets of a datagram as text.
func all(h Header, body []byte) ([]string, error) {
	var got []string
	p := SplitData(h, body)
	for {
		h, body, ok := p.Next()
		if !ok {
			return got, p.Err()
		}
		letter := "-"
		if len(body) > 0 {
			letter = string(body[:1])
		}
		got = append(got, fmt.Sprintf("seq=%d serial=%d flags=%02x status=%d sum=%x %d%s", h.Seq, h.Serial, uint8(h.Flags), h.UserStatus, h.Checksum, len(body), letter))
	}
}

const (
	more = FlagJumbo | FlagMore
	cl   = FlagClient
)

func TestPacketsOfADatagram(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts []part
		want  []string
		cut   bool
	}{
		{"one", []part{{cl | FlagLast, 5, 100}}, []string{"seq=7 serial=20 flags=05 status=9 sum=5 100a"}, false},
		{"an empty one", []part{{FlagLast, 0, 0}}, []string{"seq=7 serial=20 flags=04 status=9 sum=0 0-"}, false},
		{"two", []part{{more | cl, 5, 1412}, {cl, 6, 10}}, []string{
			"seq=7 serial=20 flags=29 status=9 sum=5 1412a",
			"seq=8 serial=21 flags=01 status=0 sum=6 10b",
		}, false},
		{"four whole ones", []part{{more, 5, 1412}, {more, 6, 1412}, {more, 7, 1412}, {FlagLast, 8, 1412}}, []string{
			"seq=7 serial=20 flags=28 status=9 sum=5 1412a",
			"seq=8 serial=21 flags=28 status=0 sum=6 1412b",
			"seq=9 serial=22 flags=28 status=0 sum=7 1412c",
			"seq=10 serial=23 flags=04 status=0 sum=8 1412d",
		}, false},
		{"the last one empty", []part{{more, 5, 1412}, {FlagLast, 6, 0}}, []string{
			"seq=7 serial=20 flags=28 status=9 sum=5 1412a",
			"seq=8 serial=21 flags=04 status=0 sum=6 0-",
		}, false},
		{"too short for two packets", []part{{more, 5, 1415}}, []string{"seq=7 serial=20 flags=28 status=9 sum=5 1415a"}, false},
		{"the flag in the last packet", []part{{more, 5, 1412}, {more, 6, 1415}}, []string{"seq=7 serial=20 flags=28 status=9 sum=5 1412a"}, true},
		{"the flag in the last of three", []part{{more, 5, 1412}, {more, 6, 1412}, {more, 7, 3}}, []string{
			"seq=7 serial=20 flags=28 status=9 sum=5 1412a",
			"seq=8 serial=21 flags=28 status=0 sum=6 1412b",
		}, true},
		{"a last packet longer than the others", []part{{more, 5, 1412}, {0, 6, 1500}}, []string{
			"seq=7 serial=20 flags=28 status=9 sum=5 1412a",
			"seq=8 serial=21 flags=00 status=0 sum=6 1500b",
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, b := jumbogram(tt.parts...)
			got, err := all(h, b)
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got\n%q\nwant\n%q", got, tt.want)
			}
			if e, ok := errors.AsType[*JumboError](err); ok != tt.cut || !ok && err != nil || ok && e.Packet != len(got)+1 {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Wherever a jumbogram is cut, the packets in front of the cut come out, and the error says
// that it was cut, unless it looks whole.
func TestJumbogramsCutShort(t *testing.T) {
	h, b := jumbogram(part{more, 5, 1412}, part{more, 6, 1412}, part{0, 7, 100})
	for n := range len(b) {
		got, err := all(h, b[:n])
		want, cut := 3, false
		switch {
		case n < 1416:
			want = 1 // one plain packet
		case n < 2*1416:
			want, cut = 1, true
		}
		if len(got) != want || cut != (err != nil) {
			t.Fatalf("%d of %d bytes: %d packets, %v", n, len(b), len(got), err)
		}
	}
}

func TestNothingComesAfterTheEndOfADatagram(t *testing.T) {
	for _, b := range [][]byte{nil, make([]byte, 1416), make([]byte, 1415)} {
		p := SplitData(Header{Type: TypeData, Flags: FlagJumbo}, b)
		for range 3 {
			p.Next()
		}
		err := p.Err()
		if h, body, ok := p.Next(); ok || body != nil || h != (Header{}) || !errors.Is(p.Err(), err) {
			t.Errorf("%d bytes: %v %d bytes, %t", len(b), &h, len(body), ok)
		}
	}
}

func TestOnlyDataPacketsAreSplit(t *testing.T) {
	h, b := jumbogram(part{more, 5, 1412}, part{0, 6, 10})
	h.Type = TypeAck // where the bit says that the sender knows slow start
	if got, err := all(h, b); len(got) != 1 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSequenceAndSerialNumbersWrap(t *testing.T) {
	h, b := jumbogram(part{more, 5, 1412}, part{0, 6, 10})
	h.Seq, h.Serial = 0xffffffff, 0xffffffff
	p := SplitData(h, b)
	p.Next()
	if h, _, ok := p.Next(); !ok || h.Seq != 0 || h.Serial != 0 {
		t.Errorf("%v, %t", &h, ok)
	}
}

func TestABodyInAJumbogramHasNoRoomToGrowInto(t *testing.T) {
	h, b := jumbogram(part{more, 5, 1412}, part{0, 6, 10})
	was := bytes.Clone(b)
	p := SplitData(h, b)
	_, body, _ := p.Next()
	_ = append(body, 7, 7)
	if !bytes.Equal(b, was) {
		t.Error("appending to a body changes the next packet")
	}
}
