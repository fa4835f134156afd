package rpc_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rx/rpc"
)

// everything has a field of each kind.
type everything struct {
	U32   uint32
	I32   int32
	U64   uint64
	I64   int64
	I16   int16
	U16   uint16
	C     int8
	B     uint8
	OK    bool
	S     string
	O     []byte
	F     [5]byte
	T     string
	Pairs []pair
	Is    []int32
	Us    []uint32
	Names []string
	Fixed [2]int32
}

func (v *everything) XDR(x *rpc.XDR) {
	x.Uint32(&v.U32)
	x.Int32(&v.I32)
	x.Uint64(&v.U64)
	x.Int64(&v.I64)
	x.Int16(&v.I16)
	x.Uint16(&v.U16)
	x.Char(&v.C)
	x.Byte(&v.B)
	x.Bool(&v.OK)
	x.String(&v.S, 10)
	x.Opaque(&v.O, 10)
	x.Fixed(v.F[:])
	x.Text(&v.T, 4)
	rpc.Slice(x, &v.Pairs, 3, 8)
	rpc.Int32s(x, &v.Is, 3)
	rpc.Uint32s(x, &v.Us, 3)
	rpc.Strings(x, &v.Names, 3, 2)
	rpc.Int32Array(x, v.Fixed[:])
	x.Skip(2)
}

func TestEachKindOfFieldIsEncodedAsItsTypeHasIt(t *testing.T) {
	v := everything{
		1, -2, 3, -4, -5, 0xfffe, -6, 0xfe, true, "abc", []byte("de"),
		[5]byte{1, 2, 3, 4, 5},
		"fgh",
		[]pair{{"i", 1}},
		[]int32{-1},
		[]uint32{2, 3},
		[]string{"", "k"},
		[2]int32{7, 8},
	}
	const want = "00000001" + "fffffffe" + "0000000000000003" + "fffffffffffffffc" + "fffffffb" + "0000fffe" + "fffffffa" + "000000fe" + "00000001" +
		"00000003" + "61626300" + "00000002" + "64650000" + "0102030405000000" + "00000066000000670000006800000000" +
		"00000001" + "00000001" + "69000000" + "00000001" + "00000001" + "ffffffff" + "00000002" + "0000000200000003" +
		"00000002" + "0000000000000000" + "0000006b00000000" + "0000000700000008" + "0000000000000000"
	p, err := rpc.Append(nil, &v)
	if err != nil || fmt.Sprintf("%x", p) != want {
		t.Fatalf("%x, %v; want %s", p, err, want)
	}
	var got everything
	if err := rpc.Decode(p, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(v) {
		t.Errorf("%v, %v; want %v", got, err, v)
	}
	for n := range p {
		if err := rpc.Decode(p[:n], new(everything)); !errors.Is(err, xdr.ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := rpc.Decode(append(p, 0), new(everything)); !errors.Is(err, xdr.ErrTrailer) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestWhatIsTooLongIsNotEncoded(t *testing.T) {
	for name, v := range map[string]everything{
		"string": {S: "12345678901"}, "opaque": {O: make([]byte, 11)}, "text": {T: "1234"}, "slice": {Pairs: make([]pair, 4)},
		"ints": {Is: make([]int32, 4)}, "uints": {Us: make([]uint32, 4)}, "strings": {Names: make([]string, 4)},
		"element": {Pairs: []pair{{Name: "12345678901234567"}}}, "a string with a zero": {T: "a\x00b"},
	} {
		if p, err := rpc.Append([]byte("kept"), &v); err == nil || string(p) != "kept" {
			t.Errorf("%s: %x, %v", name, p, err)
		}
	}
}

func TestTextNeedsItsZero(t *testing.T) {
	v := everything{T: "abc"}
	p, err := rpc.Append(nil, &v)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(p, []byte("\x00\x00\x00a\x00\x00\x00b"))
	p[at+15] = 'd'
	if err := rpc.Decode(p, new(everything)); err == nil {
		t.Error("four characters in an array of four")
	}
	p[at+7], p[at+11] = 0, 'z' // behind the zero may be anything
	var got everything
	if err := rpc.Decode(p, &got); err != nil || got.T != "a" {
		t.Errorf("%q, %v", got.T, err)
	}
}

func TestEncodingWritesNothingToTheValue(t *testing.T) {
	v := everything{Is: []int32{1}, Us: []uint32{2}}
	done := make(chan struct{})
	go func() { // the race detector sees a write
		defer close(done)
		if _, err := rpc.Append(nil, &v); err != nil {
			t.Error(err)
		}
	}()
	if _, err := rpc.Append(nil, &v); err != nil {
		t.Error(err)
	}
	<-done
}

// What decodes is encoded again to a value that decodes equally.
func FuzzDecode(f *testing.F) {
	p, err := rpc.Append(nil, &everything{S: "abc", Names: []string{"a"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p)
	f.Fuzz(func(t *testing.T, p []byte) {
		var v, again everything
		if rpc.Decode(p, &v) != nil {
			return
		}
		q, err := rpc.Append(nil, &v)
		if err != nil {
			t.Fatalf("%v can't be encoded: %v", v, err)
		}
		if err := rpc.Decode(q, &again); err != nil || fmt.Sprint(v) != fmt.Sprint(again) {
			t.Fatalf("%v became %v: %v", v, again, err)
		}
	})
}
