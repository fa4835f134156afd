package rpcflow

import (
	"bytes"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
)

func BenchmarkAnalyze(b *testing.B) {
	file := golden(b, "nfs3")
	for name, u := range map[string]dissect.ULP{"RDMAP only": nil, "RPC-over-RDMA": &Analyzer{}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := capture.NewReader(bytes.NewReader(file))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := dissect.AnalyzeULP(b.Context(), r, u, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
