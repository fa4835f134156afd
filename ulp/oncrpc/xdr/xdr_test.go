package xdr_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"urnic/ulp/oncrpc/xdr"
)

// The bytes of RFC 4506 §4 and §7, written down by hand.
func TestTypesAreEncodedAsTheRFCDrawsThem(t *testing.T) {
	for name, tc := range map[string]struct {
		encode func(e *xdr.Encoder)
		decode func(d *xdr.Decoder) any
		want   any
		octets string
	}{
		"unsigned":       {func(e *xdr.Encoder) { e.Uint32(0xfedcba98) }, func(d *xdr.Decoder) any { return d.Uint32() }, uint32(0xfedcba98), "fedcba98"},
		"integer":        {func(e *xdr.Encoder) { e.Int32(-2) }, func(d *xdr.Decoder) any { return d.Int32() }, int32(-2), "fffffffe"},
		"unsigned hyper": {func(e *xdr.Encoder) { e.Uint64(1 << 63) }, func(d *xdr.Decoder) any { return d.Uint64() }, uint64(1) << 63, "8000000000000000"},
		"hyper":          {func(e *xdr.Encoder) { e.Int64(-2) }, func(d *xdr.Decoder) any { return d.Int64() }, int64(-2), "fffffffffffffffe"},
		"true":           {func(e *xdr.Encoder) { e.Bool(true) }, func(d *xdr.Decoder) any { return d.Bool() }, true, "00000001"},
		"false":          {func(e *xdr.Encoder) { e.Bool(false) }, func(d *xdr.Decoder) any { return d.Bool() }, false, "00000000"},
		"fixed":          {func(e *xdr.Encoder) { e.Fixed([]byte("abcde")) }, func(d *xdr.Decoder) any { return string(d.Fixed(5)) }, "abcde", "6162636465000000"},
		"opaque":         {func(e *xdr.Encoder) { e.Opaque([]byte("abc")) }, func(d *xdr.Decoder) any { return string(d.Opaque(3)) }, "abc", "0000000361626300"},
		"empty opaque":   {func(e *xdr.Encoder) { e.Opaque(nil) }, func(d *xdr.Decoder) any { return string(d.Opaque(0)) }, "", "00000000"},
		"string":         {func(e *xdr.Encoder) { e.String("sillyprog") }, func(d *xdr.Decoder) any { return d.String(255) }, "sillyprog", "0000000973696c6c7970726f67000000"},
		"bulk":           {func(e *xdr.Encoder) { e.Bulk([]byte("(quit)")) }, func(d *xdr.Decoder) any { return string(d.Bulk(65535)) }, "(quit)", "00000006287175697429" + "0000"},
	} {
		t.Run(name, func(t *testing.T) {
			var e xdr.Encoder
			tc.encode(&e)
			stream := e.AppendTo(nil)
			if got := hex.EncodeToString(stream); got != tc.octets || e.Len() != len(stream) {
				t.Errorf("%s, of %d octets; want %s", got, e.Len(), tc.octets)
			}
			d := xdr.NewDecoder(stream)
			if got := tc.decode(d); !reflect.DeepEqual(got, tc.want) || d.End() != nil || d.At() != len(stream) {
				t.Errorf("decoded %v at %d: %v", got, d.At(), d.Err())
			}
			for n := range stream {
				d := xdr.NewDecoder(stream[:n])
				if tc.decode(d); !errors.Is(d.Err(), xdr.ErrShort) {
					t.Errorf("%d octets of %d: %v", n, len(stream), d.Err())
				}
			}
			d = xdr.NewDecoder(append(stream, 0, 0, 0, 0))
			if tc.decode(d); !errors.Is(d.End(), xdr.ErrTrailer) {
				t.Errorf("with more behind it: %v", d.Err())
			}
		})
	}
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		decode func(d *xdr.Decoder)
		want   error
	}{
		"boolean 2":                     {"00000002", func(d *xdr.Decoder) { d.Bool() }, xdr.ErrValue},
		"opaque of more than allowed":   {"0000000461626364", func(d *xdr.Decoder) { d.Opaque(3) }, xdr.ErrLong},
		"string of more than allowed":   {"0000000461626364", func(d *xdr.Decoder) { d.String(3) }, xdr.ErrLong},
		"bulk of more than allowed":     {"0000000461626364", func(d *xdr.Decoder) { d.Bulk(3) }, xdr.ErrLong},
		"a length of 4 GiB":             {"ffffffff61626364", func(d *xdr.Decoder) { d.Opaque(1<<31 - 1) }, xdr.ErrLong},
		"a length that is not there":    {"7fffffff61626364", func(d *xdr.Decoder) { d.Opaque(1<<31 - 1) }, xdr.ErrShort},
		"no bound":                      {"0000000161626364", func(d *xdr.Decoder) { d.Opaque(-1) }, xdr.ErrLong},
		"fixed of less than nothing":    {"00000000", func(d *xdr.Decoder) { d.Fixed(-1) }, xdr.ErrLong},
		"a count of more than allowed":  {"00000004", func(d *xdr.Decoder) { d.Count(3, 0) }, xdr.ErrLong},
		"a count of more than is there": {"0000000300000000", func(d *xdr.Decoder) { d.Count(100, 4) }, xdr.ErrShort},
		"nothing to fill up":            {"00000003616263", func(d *xdr.Decoder) { d.Opaque(3) }, xdr.ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := hex.DecodeString(tc.stream)
			if err != nil {
				t.Fatal(err)
			}
			d := xdr.NewDecoder(stream)
			tc.decode(d)
			var e *xdr.Error
			if !errors.Is(d.Err(), tc.want) || !errors.As(d.Err(), &e) || e.What == "" || !strings.Contains(e.Error(), fmt.Sprint(e.At)) {
				t.Errorf("%v; want %v", d.Err(), tc.want)
			}
			if d.Uint32() != 0 || d.Uint64() != 0 || d.Opaque(10) != nil || d.String(10) != "" || d.Bool() || d.Left() != 0 {
				t.Error("something is read after an error")
			}
			if first := d.Err(); !errors.Is(d.End(), first) {
				t.Errorf("the error becomes %v", d.End())
			}
		})
	}
}

// Any bytes may fill data up: those that RDMA has placed may be left of others.
func TestWhatFillsDataUpIsIgnored(t *testing.T) {
	d := xdr.NewDecoder([]byte{0, 0, 0, 1, 'x', 1, 2, 3})
	if got := string(d.Opaque(4)); got != "x" || d.End() != nil {
		t.Errorf("%q, %v", got, d.Err())
	}
}

// stream has bulks between other things, and at the end: in one piece, in two, in more.
func stream(e *xdr.Encoder, data ...string) {
	for i, p := range data {
		e.Uint32(uint32(i))
		var pieces [][]byte
		for n := min(i, len(p)); n > 0; n-- {
			pieces, p = append(pieces, []byte(p[:1])), p[1:]
		}
		e.Bulk(append(pieces, []byte(p))...)
	}
}

func TestBulksAreWhereTheStreamHasThem(t *testing.T) {
	data := []string{"one", "", "three octets", "fives"}
	var e xdr.Encoder
	stream(&e, data...)
	whole := e.AppendTo([]byte("before"))[len("before"):]
	if got := bytes.Join(e.Pieces(nil), nil); !bytes.Equal(got, whole) || e.Len() != len(whole) {
		t.Errorf("in pieces: %x; want %x, of %d octets", got, whole, e.Len())
	}
	for i, b := range e.Bulks() {
		if got := string(whole[b.Position : b.Position+b.Len]); got != data[i] || string(bytes.Join(b.Pieces, nil)) != data[i] {
			t.Errorf("at %d stands %q; want %q", b.Position, got, data[i])
		}
	}
	e.Reset()
	if e.Len() != 0 || len(e.Bulks()) != 0 || len(e.AppendTo(nil)) != 0 || len(e.Pieces(nil)) != 0 {
		t.Error("something is left")
	}
}

// Whichever bulks a transport moves, with or without what fills them up, the decoder
// finds them.
func TestMovedBulksAreFound(t *testing.T) {
	data := []string{"one", "four", "three octets", "fives"}
	var e xdr.Encoder
	stream(&e, data...)
	for which := range 1 << len(data) {
		for _, filled := range []bool{false, true} {
			var moved []xdr.Moved
			reduced := e.Reduced(nil, func(i int, b xdr.Bulk) bool {
				if which>>i&1 == 0 {
					return false
				}
				p := bytes.Join(b.Pieces, nil)
				for filled && len(p)%4 != 0 {
					p = append(p, 'x')
				}
				moved = append(moved, xdr.Moved{Position: b.Position, Data: p})
				return true
			})
			d := xdr.NewDecoder(reduced, moved...)
			for i, p := range data {
				if n, got := d.Uint32(), d.Bulk(100); n != uint32(i) || string(got) != p {
					t.Errorf("moved %b, filled up %v: bulk %d is %q; want %q", which, filled, n, got, p)
				}
			}
			if err := d.End(); err != nil || d.At() != e.Len() {
				t.Errorf("moved %b, filled up %v: at %d of %d: %v", which, filled, d.At(), e.Len(), err)
			}
		}
	}
}

func TestMovedDataThatIsNotWhatTheStreamSaysIsRefused(t *testing.T) {
	var e xdr.Encoder
	stream(&e, "one", "fives")
	first, second := e.Bulks()[0].Position, e.Bulks()[1].Position
	for name, moved := range map[string][]xdr.Moved{
		"too short":            {{first, []byte("on")}},
		"too long":             {{first, []byte("oneee")}},
		"empty":                {{first, nil}},
		"at another place":     {{first - 4, []byte("one")}},
		"inside":               {{first + 1, []byte("one")}},
		"before the beginning": {{-4, []byte("one")}},
		"behind the end":       {{first, []byte("one")}, {second + 100, []byte("fives")}},
		"the same twice":       {{first, []byte("one")}, {first, []byte("one")}},
	} {
		t.Run(name, func(t *testing.T) {
			reduced := e.Reduced(nil, func(i int, _ xdr.Bulk) bool { return i < len(moved) })
			d := xdr.NewDecoder(reduced, moved...)
			for range 2 {
				d.Uint32()
				d.Bulk(100)
			}
			if err := d.End(); !errors.Is(err, xdr.ErrMoved) && !errors.Is(err, xdr.ErrShort) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("what may not be moved", func(t *testing.T) {
		d := xdr.NewDecoder([]byte{0, 0, 0, 3}, xdr.Moved{Position: 4, Data: []byte("one")})
		if d.Opaque(100); !errors.Is(d.Err(), xdr.ErrMoved) {
			t.Errorf("got %v", d.Err())
		}
	})
}

func TestCodecAllocatesNothing(t *testing.T) {
	var e xdr.Encoder
	bulk := make([]byte, 4096)
	var out []byte
	var d xdr.Decoder
	if n := testing.AllocsPerRun(100, func() {
		e.Reset()
		e.Uint32(1)
		e.Uint64(2)
		e.String("name")
		e.Bulk(bulk)
		out = e.AppendTo(out[:0])
		d = *xdr.NewDecoder(out)
		d.Uint32()
		d.Uint64()
		d.Opaque(255)
		d.Bulk(4096)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if d.Err() != nil {
		t.Error(d.Err())
	}
}

// A program of bytes says what is read next: nothing that a peer sends makes
// the decoder panic, read beyond the stream, or go back.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, []byte("\x00\x00\x00\x01abcd"), 4, []byte("abc"))
	f.Add([]byte{6, 0}, []byte("\x00\x00\x00\x01abcd"), xdr.Inline, []byte(nil))
	f.Add([]byte{6, 0}, []byte("\x00\x00\x00\x01abcd"), xdr.Next, []byte("a"))
	f.Fuzz(func(t *testing.T, program, stream []byte, position int, data []byte) {
		d := xdr.NewDecoder(stream, xdr.Moved{Position: position, Data: data})
		last, total := 0, 0
		for _, op := range program {
			switch op % 8 {
			case 0:
				d.Uint32()
			case 1:
				d.Uint64()
			case 2:
				d.Bool()
			case 3:
				total += len(d.Fixed(int(op)))
			case 4:
				total += len(d.Opaque(int(op)))
			case 5:
				total += len(d.String(int(op)))
			case 6:
				total += len(d.Bulk(1 << 20))
			case 7:
				if n := d.Count(int(op), 4); n*4 > d.Left() {
					t.Fatalf("%d elements of 4 octets in %d", n, d.Left())
				}
			}
			if d.At() < last {
				t.Fatalf("from %d back to %d", last, d.At())
			}
			last = d.At()
		}
		if total > len(stream)+len(data) {
			t.Fatalf("%d octets were read of %d and %d", total, len(stream), len(data))
		}
		if d.End() == nil && last > len(stream)+len(data)+3 {
			t.Fatalf("it ends at %d, with %d octets and %d", last, len(stream), len(data))
		}
	})
}

func TestMovedDataThatIsKnownByItsOrder(t *testing.T) {
	// A word, "one" and "fives" of which what is not moved is in the stream, a word.
	stream := func(inline ...string) []byte {
		var e xdr.Encoder
		e.Uint32(7)
		for i, s := range []string{"one", "fives"} {
			e.Uint32(uint32(len(s)))
			e.Fixed([]byte(inline[i]))
		}
		e.Uint32(8)
		return e.AppendTo(nil)
	}
	next := func(s string) xdr.Moved { return xdr.Moved{Position: xdr.Next, Data: []byte(s)} }
	inline := xdr.Moved{Position: xdr.Inline}
	for name, c := range map[string]struct {
		stream []byte
		moved  []xdr.Moved
		err    error
	}{
		"both":                {stream("", ""), []xdr.Moved{next("one"), next("fives")}, nil},
		"filled up":           {stream("", ""), []xdr.Moved{next("one\x00"), next("fives\x00\x00\x00")}, nil},
		"the first":           {stream("", "fives"), []xdr.Moved{next("one"), inline}, nil},
		"the first, no more":  {stream("", "fives"), []xdr.Moved{next("one")}, nil},
		"the second":          {stream("one", ""), []xdr.Moved{inline, next("fives")}, nil},
		"none":                {stream("one", "fives"), []xdr.Moved{inline, inline}, nil},
		"empty ones left":     {stream("one", "fives"), []xdr.Moved{inline, inline, inline, next("")}, nil},
		"the first is inline": {stream("one", ""), []xdr.Moved{next(""), next("fives")}, xdr.ErrUnmoved},
		"the next is inline":  {stream("", "fives"), []xdr.Moved{next("one"), next("")}, xdr.ErrUnmoved},
		"one left":            {stream("", ""), []xdr.Moved{next("one"), next("fives"), next("x")}, xdr.ErrMoved},
		"too short":           {stream("", ""), []xdr.Moved{next("on"), next("fives")}, xdr.ErrMoved},
		"too long":            {stream("", ""), []xdr.Moved{next("one\x00\x00"), next("fives")}, xdr.ErrMoved},
	} {
		t.Run(name, func(t *testing.T) {
			d := xdr.NewDecoder(c.stream, c.moved...)
			if v := d.Uint32(); v != 7 {
				t.Fatalf("got %d", v)
			}
			one := string(d.Bulk(10))
			var five [5]byte
			n := d.BulkInto(five[:])
			last := d.Uint32()
			if err := d.End(); !errors.Is(err, c.err) {
				t.Fatalf("got %v", err)
			}
			if c.err == nil && (one != "one" || string(five[:n]) != "fives" || last != 8) {
				t.Errorf("got %q, %q, %d", one, five[:n], last)
			}
		})
	}
}

// Data of no bytes uses no place, and ends up where that is.
func TestPlaceOfEmptyDataMayStayUnused(t *testing.T) {
	for name, m := range map[string]xdr.Moved{
		"a place": {Position: xdr.Next, Data: []byte("place")[:0]}, "none": {Position: xdr.Inline},
	} {
		t.Run(name, func(t *testing.T) {
			var e xdr.Encoder
			e.Bulk(nil)
			e.Bulk([]byte("three octets"))
			stream := e.Reduced(nil, func(i int, _ xdr.Bulk) bool { return i == 1 })
			d := xdr.NewDecoder(stream, m, xdr.Moved{Position: xdr.Next, Data: []byte("three octets")})
			if p, q := d.Bulk(10), string(d.Bulk(20)); len(p) != 0 || q != "three octets" || d.End() != nil {
				t.Errorf("got %q, %q, %v", p, q, d.Err())
			}
		})
	}
}

func TestBulkThatIsLongerThanItsPlaceIsRefused(t *testing.T) {
	var e xdr.Encoder
	e.Bulk([]byte("fives"))
	d := xdr.NewDecoder(e.AppendTo(nil))
	if n := d.BulkInto(make([]byte, 4)); n != 0 || !errors.Is(d.Err(), xdr.ErrLong) {
		t.Errorf("got %d, %v", n, d.Err())
	}
}
