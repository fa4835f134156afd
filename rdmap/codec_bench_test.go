package rdmap

import "testing"

// blame is a Terminate message with both headers.
var blame = Terminate{Code: 0x0100, HdrCt: 0xE0, SegmentLen: 46, DDPHeader: header(false), RDMAHeader: make([]byte, ReadRequestLen)}

func BenchmarkAppendHeader(b *testing.B) {
	for _, tt := range codecTable {
		b.Run(tt.name, func(b *testing.B) {
			buf := make([]byte, 0, AtomicRequestLen)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = tt.value.AppendBinary(buf[:0])
			}
		})
	}
	b.Run("Terminate", func(b *testing.B) {
		t := blame
		buf := make([]byte, 0, MaxTerminateLen)
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = t.AppendBinary(buf[:0])
		}
	})
}

// The functions are called as they are, so that nothing is put into an
// interface.
func BenchmarkParseHeader(b *testing.B) {
	wire := func(name string) []byte {
		for _, tt := range codecTable {
			if tt.name == name {
				return tt.wire
			}
		}
		b.Fatalf("there is no %s", name)
		return nil
	}
	parse(b, "Read Request", wire("Read Request"), ParseReadRequest)
	parse(b, "Atomic Request", wire("Atomic Request"), ParseAtomicRequest)
	parse(b, "Atomic Response", wire("Atomic Response"), ParseAtomicResponse)
	parse(b, "Immediate", make([]byte, ImmediateLen), func(p []byte) (Immediate, error) { return ParseImmediate(OpImmediate, p) })
	buf, err := blame.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	parse(b, "Terminate", buf, ParseTerminate)
}

func parse[T any](b *testing.B, name string, wire []byte, f func([]byte) (T, error)) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := f(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
}
