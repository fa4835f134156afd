package mpa

import (
	"fmt"
	"testing"
)

// BenchmarkFrame encodes and parses the frames of the start-up.
func BenchmarkFrame(b *testing.B) {
	for _, tt := range frameTable {
		b.Run("append/"+tt.name, func(b *testing.B) {
			buf := make([]byte, 0, 1024)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = tt.frame.AppendBinary(buf[:0])
			}
		})
		b.Run("parse/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := ParseFrame(tt.wire); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFPDUWithoutCRC is what framing costs apart from CRCs; those with CRCs
// are BenchmarkAppendFPDU and BenchmarkDeframer.
func BenchmarkFPDUWithoutCRC(b *testing.B) {
	for _, n := range []int{64, 1442, 64768} {
		f := Framer{}
		payload := make([]byte, n)
		b.Run(fmt.Sprintf("append/ulpdu=%d", n), func(b *testing.B) {
			buf := make([]byte, 0, MaxFPDULen)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = f.AppendFPDU(buf[:0], payload)
			}
		})
		fpdu, err := f.AppendFPDU(nil, payload)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("next/ulpdu=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := Deframer{}
				if _, m, err := d.Next(fpdu); m != len(fpdu) || err != nil {
					b.Fatal(m, err)
				}
			}
		})
	}
}
