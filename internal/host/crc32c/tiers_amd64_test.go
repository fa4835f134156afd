//go:build !purego

package crc32c

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// A tier is a way to compute that this processor has.
type tier struct {
	name           string
	folds, chained bool
}

// tiers returns those of this processor, the fastest one last.
func tiers() []tier {
	all := []tier{
		{"portable", false, false},
		{"folding", true, false},
		{"folding and CRC32", true, true},
	}
	if !canFold() {
		return all[:1]
	}
	return all // chains are not always faster, but right wherever folding is
}

// use makes the tier the one that is used, until the test's end.
func (tr tier) use(tb testing.TB) {
	f, c := folds, chained
	tb.Cleanup(func() { folds, chained = f, c })
	folds, chained = tr.folds, tr.chained
}

// The system has its own list of what the processor can do.
func TestTierFitsTheProcessor(t *testing.T) {
	if runtime.GOOS != "linux" {
		const missing = "only Linux lists the processor's features in /proc/cpuinfo"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n\n"))
	info := map[string]string{}
	for line := range strings.Lines(string(first)) {
		key, value, _ := strings.Cut(line, ":")
		info[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	flags := strings.Fields(info["flags"])
	fold := true
	for _, f := range []string{"avx512f", "avx512vl", "avx512bw", "avx512dq", "vpclmulqdq", "bmi2", "sse4_2"} {
		fold = fold && slices.Contains(flags, f)
	}
	if folds != fold {
		t.Errorf("folds is %t; the system's flags are %s", folds, flags)
	}
	zen5 := info["vendor_id"] == "AuthenticAMD" && len(info["cpu family"]) >= 2 && info["cpu family"] >= "26"
	if chained != (fold && zen5) {
		t.Errorf("chained is %t for a processor of %s, family %s", chained, info["vendor_id"], info["cpu family"])
	}
}

func TestOctetsOnTheStackStayThere(t *testing.T) {
	inEachTier(t, func(t *testing.T) {
		n := testing.AllocsPerRun(10, func() {
			var src, dst [300]byte
			_ = Copy(dst[:], src[:], Update(0, src[:]))
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestCopySumsWhatItCopiesWhileOthersWrite(t *testing.T) {
	for _, tr := range tiers()[1:] { // Go's copy would be a race
		t.Run(tr.name, func(t *testing.T) {
			tr.use(t)
			words := make([]atomic.Uint64, 512)
			src := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
			dst := make([]byte, len(src))
			var done atomic.Bool
			var writer sync.WaitGroup
			writer.Go(func() {
				for i := uint64(0); !done.Load(); i++ {
					words[i*7%uint64(len(words))].Store(i)
				}
			})
			for range 2000 {
				if got, want := Copy(dst, src, 0), Update(0, dst); got != want {
					t.Errorf("%08x, but what was copied has %08x", got, want)
					break
				}
			}
			done.Store(true)
			writer.Wait()
		})
	}
}
