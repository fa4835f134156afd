package oncrpc_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// fragment is a fragment of a record.
func fragment(last bool, data string) string {
	mark := []byte{0, byte(len(data) >> 16), byte(len(data) >> 8), byte(len(data))}
	if last {
		mark[0] |= 0x80
	}
	return string(mark) + data
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	var stream bytes.Buffer
	var want [][]byte
	for i := range 20 {
		var e xdr.Encoder
		e.Uint32(uint32(i))
		e.Bulk(bytes.Repeat([]byte{byte(i)}, i*i*977))
		want = append(want, e.AppendTo(nil))
		if err := oncrpc.WriteRecord(&stream, &e); err != nil {
			t.Fatal(err)
		}
	}
	r := oncrpc.NewRecordReader(iotest.HalfReader(&stream), 1<<20)
	var p []byte
	for i := range want {
		var err error
		if p, err = r.Next(p[:0]); err != nil || !bytes.Equal(p, want[i]) {
			t.Fatalf("record %d: %d octets, %v; want %d", i, len(p), err, len(want[i]))
		}
	}
	if _, err := r.Next(nil); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestRecordOfManyFragmentsIsOne(t *testing.T) {
	stream := fragment(false, "one") + fragment(false, "") + fragment(false, "two") + fragment(true, "") + fragment(true, "next")
	r := oncrpc.NewRecordReader(iotest.OneByteReader(bytes.NewReader([]byte(stream))), 6)
	for _, want := range []string{"onetwo", "next"} {
		if p, err := r.Next([]byte("before ")); string(p) != "before "+want || err != nil {
			t.Errorf("%q, %v; want %q", p, err, want)
		}
	}
}

func TestRecordsThatAreNoneAreRefused(t *testing.T) {
	empty := strings.Repeat(fragment(false, ""), 17)
	for name, tc := range map[string]struct {
		stream string
		want   error
	}{
		"nothing":                     {"", io.EOF},
		"half a mark":                 {"\x80\x00", io.ErrUnexpectedEOF},
		"a mark and no data":          {"\x80\x00\x00\x04", io.ErrUnexpectedEOF},
		"half of the data":            {"\x80\x00\x00\x04ab", io.ErrUnexpectedEOF},
		"no last fragment":            {fragment(false, "ab"), io.ErrUnexpectedEOF},
		"too long":                    {fragment(true, "elevenbytes"), oncrpc.ErrRecordLong},
		"too long in all":             {fragment(false, "sixsix") + fragment(true, "sixsix"), oncrpc.ErrRecordLong},
		"2 GiB that are not there":    {"\xff\xff\xff\xff", oncrpc.ErrRecordLong},
		"empty fragments without end": {empty, oncrpc.ErrRecordEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := oncrpc.NewRecordReader(bytes.NewReader([]byte(tc.stream)), 10).Next(nil); !errors.Is(err, tc.want) {
				t.Errorf("%q, %v; want %v", p, err, tc.want)
			}
		})
	}
	failed := errors.New("the cable is cut")
	if _, err := oncrpc.NewRecordReader(iotest.ErrReader(failed), 10).Next(nil); !errors.Is(err, failed) {
		t.Errorf("an error of the stream becomes %v", err)
	}
}

// A peer that names a length gets no memory for it: it must send the bytes.
func TestMemoryComesWithTheOctets(t *testing.T) {
	r := oncrpc.NewRecordReader(bytes.NewReader([]byte("\xbf\xff\xff\xffabcd")), 1<<30)
	p, err := r.Next(nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) || string(p) != "abcd" || cap(p) > 1<<20 {
		t.Errorf("%q in %d octets of memory, %v", p, cap(p), err)
	}
}

func FuzzRecordReader(f *testing.F) {
	f.Add([]byte(fragment(false, "one")+fragment(true, "two")), uint16(6))
	f.Fuzz(func(t *testing.T, stream []byte, most uint16) {
		r := oncrpc.NewRecordReader(bytes.NewReader(stream), int(most))
		total := 0
		for {
			p, err := r.Next(nil)
			if len(p) > int(most) {
				t.Fatalf("%d octets of %d", len(p), most)
			}
			if err != nil {
				return
			}
			if total += 4 + len(p); total > len(stream) {
				t.Fatalf("%d octets of %d", total, len(stream))
			}
		}
	})
}
