package ddp

import (
	"errors"
	"math"
	"strings"
	"testing"

	"urnic/stag"
)

// A memoryTest is a sink whose ULP has a table with some regions, each filled
// with dots.
type memoryTest struct {
	*sinkTest
	tags map[string]stag.STag
	mem  map[string][]byte
}

const (
	lowBase  = 0x10000
	highBase = math.MaxUint64 - 64 // of 64 bytes: the region ends as high as one can
)

func newMemoryTest(t testing.TB) *memoryTest {
	m := &memoryTest{sinkTest: newSinkTest(t, newUpper([]int{16})), tags: map[string]stag.STag{}, mem: map[string][]byte{}}
	d := domains(t, 2)
	m.ulp.scope = stag.Scope{Domain: d[0], Stream: 1}
	const all = stag.LocalWrite | stag.RemoteWrite
	for name, r := range map[string]struct {
		domain int
		stag.Memory
	}{
		"ours":           {0, stag.Memory{Base: lowBase, Access: all}},
		"this stream's":  {0, stag.Memory{Base: lowBase, Access: all, Stream: 1}},
		"other stream's": {0, stag.Memory{Base: lowBase, Access: all, Stream: 2}},
		"other PD's":     {1, stag.Memory{Base: lowBase, Access: all}},
		"read only":      {0, stag.Memory{Base: lowBase, Access: stag.RemoteRead | stag.LocalWrite}},
		"high":           {0, stag.Memory{Base: highBase, Access: all}},
		"invalidated":    {0, stag.Memory{Base: lowBase, Access: all}},
	} {
		r.Mem = []byte(strings.Repeat(".", 64))
		e, err := m.ulp.table.Register(d[r.domain], r.Memory)
		if err != nil {
			t.Fatal(err)
		}
		m.tags[name], m.mem[name] = e.STag(), r.Mem
		if name == "invalidated" {
			if err := e.Deregister(); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.tags["none"] = 0
	m.tags["wrong key"] = m.tags["ours"] ^ 1
	m.tags["read only, wrong key"] = m.tags["read only"] ^ 1
	return m
}

// untouched checks that nothing was placed.
func (m *memoryTest) untouched() {
	m.Helper()
	for name, mem := range m.mem {
		if string(mem) != strings.Repeat(".", 64) {
			m.Errorf("region %q holds %q", name, mem)
		}
	}
}

func TestTaggedChecksInOrder(t *testing.T) {
	type target struct {
		region string
		to     uint64
		n      int
	}
	for _, tt := range []struct {
		name    string
		targets map[string]target
		want    Code
	}{
		{"STag not valid", map[string]target{
			"never":             {"none", lowBase, 1},
			"another key":       {"wrong key", lowBase, 1},
			"no more":           {"invalidated", lowBase, 1},
			"and out of range":  {"wrong key", 0, 1},
			"and too long":      {"wrong key", lowBase, 65},
			"and the TO wraps":  {"none", math.MaxUint64, 2},
			"and not writeable": {"read only, wrong key", lowBase, 1},
		}, CodeInvalidSTag},
		{"STag of another PD", map[string]target{
			"":                 {"other PD's", lowBase, 1},
			"and out of range": {"other PD's", 0, 1},
			"and too long":     {"other PD's", lowBase, 65},
			"and the TO wraps": {"other PD's", math.MaxUint64, 2},
		}, CodeSTagNotAssociated},
		{"STag of another stream", map[string]target{
			"":                 {"other stream's", lowBase, 1},
			"and out of range": {"other stream's", lowBase + 64, 1},
			"and too long":     {"other stream's", lowBase, 65},
		}, CodeSTagNotAssociated},
		{"placement not allowed", map[string]target{
			"":                 {"read only", lowBase, 1},
			"and out of range": {"read only", 0, 1},
			"and too long":     {"read only", lowBase + 63, 2},
			"and the TO wraps": {"read only", math.MaxUint64, 2},
		}, CodeSTagNotAssociated},
		{"TO out of range", map[string]target{
			"one too low":      {"ours", lowBase - 1, 1},
			"one too high":     {"ours", lowBase + 65, 1},
			"zero":             {"ours", 0, 1},
			"low, and long":    {"ours", lowBase - 1, 64},
			"far":              {"ours", 1<<63 + lowBase, 1},
			"and the TO wraps": {"ours", math.MaxUint64, 2},
			"wraps into it":    {"high", highBase - 1, 100},
		}, CodeBaseBounds},
		{"end out of range", map[string]target{
			"by one":      {"ours", lowBase, 65},
			"at the end":  {"ours", lowBase + 63, 2},
			"behind it":   {"ours", lowBase + 64, 1},
			"of a stream": {"this stream's", lowBase + 63, 2},
		}, CodeBaseBounds},
		{"TO wraps", map[string]target{
			"to zero":       {"high", highBase + 63, 2},
			"beyond":        {"high", highBase + 60, 100},
			"from the base": {"high", highBase, 65},
		}, CodeTOWrap},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, g := range tt.targets {
				t.Run(name, func(t *testing.T) {
					m := newMemoryTest(t)
					tag, ok := m.tags[g.region]
					if !ok {
						t.Fatalf("there is no region %q", g.region)
					}
					b := tagged(tag, g.to, true, strings.Repeat("x", g.n))
					m.take(b)
					m.wantError(tt.want, b)
					if e := (*stag.AccessError)(nil); !errors.As(m.sink.err, &e) || e.STag != tag || e.TO != g.to {
						t.Errorf("the error does not tell the access: %v", m.sink.err)
					}
					if len(m.ulp.got) != 0 {
						t.Error("the segment was delivered")
					}
					m.untouched()
				})
			}
		})
	}

	t.Run("version, and everything else", func(t *testing.T) {
		m := newMemoryTest(t)
		b := tagged(0, math.MaxUint64, true, "xx")
		b[0] ^= 3
		m.take(b)
		m.wantError(CodeTaggedVersion, b)
	})
}

func TestTaggedSegmentsAtTheLimitsArePlaced(t *testing.T) {
	for _, tt := range []struct {
		region string
		off    uint64
		n      int
	}{{"ours", 0, 64}, {"ours", 63, 1}, {"ours", 0, 1}, {"this stream's", 10, 54}, {"high", 0, 64}, {"high", 63, 1}} {
		m := newMemoryTest(t)
		base := uint64(lowBase)
		if tt.region == "high" {
			base = highBase
		}
		m.take(tagged(m.tags[tt.region], base+tt.off, true, strings.Repeat("x", tt.n)))
		dots := strings.Repeat(".", 64)
		want := dots[:tt.off] + strings.Repeat("x", tt.n) + dots[int(tt.off)+tt.n:]
		if got := string(m.mem[tt.region]); got != want || m.sink.err != nil || len(m.ulp.got) != 1 {
			t.Errorf("%+v: %q, %v; %d deliveries", tt, got, m.sink.err, len(m.ulp.got))
		}
	}
}

func TestZeroLengthTaggedSegmentIsNotChecked(t *testing.T) {
	m := newMemoryTest(t)
	segments := [][]byte{
		tagged(0, 0, true, ""),
		tagged(m.tags["invalidated"], lowBase, true, ""),
		tagged(m.tags["other PD's"], lowBase, true, ""),
		tagged(m.tags["read only"], lowBase, true, ""),
		tagged(m.tags["ours"], math.MaxUint64, true, ""),
		tagged(m.tags["high"], math.MaxUint64, false, ""),
	}
	m.take(segments...)
	if m.sink.err != nil || len(m.ulp.got) != len(segments) {
		t.Fatalf("%d deliveries, %v", len(m.ulp.got), m.sink.err)
	}
	for i, d := range m.ulp.got {
		if seg := parse(t, segments[i]); d.tagged != seg.Tagged || d.n != 0 {
			t.Errorf("delivered %+v; want %+v", d, seg.Tagged)
		}
	}
	if m.ulp.calls != len(segments) {
		t.Errorf("the ULP was called %d times for %d deliveries", m.ulp.calls, len(segments))
	}
	m.untouched()
	// "Only the DDP Control and RsvdULP Fields MUST be valid" (§5.2): they must.
	b := tagged(0, 0, true, "")
	b[0]++
	m.take(b)
	m.wantError(CodeTaggedVersion, b)
}

func TestTaggedFlagSelectsTheBufferModel(t *testing.T) {
	m := newMemoryTest(t)
	ours := m.tags["ours"]
	m.take(tagged(ours, lowBase+3, true, "tagged"), untagged(0, 1, 0, true, "untagged"))
	m.wantMessages("untagged")
	if got := string(m.mem["ours"][:10]); got != "...tagged." {
		t.Errorf("the region holds %q", got)
	}
	if got := string(m.ulp.queues[0][0].mem); got != "untagged\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("the untagged buffer holds %q", got)
	}

	// The same bytes but for T: what was the STag is part of RsvdULP then, and
	// the other way round.
	b := untagged(0, 1, 0, true, "untagged")
	b[0] |= controlTagged
	m = newMemoryTest(t)
	m.take(b)
	m.wantError(CodeInvalidSTag, b)
	b = tagged(ours, 0, true, "123456789abc")
	b[0] &^= controlTagged
	m = newMemoryTest(t)
	m.take(b) // QN and MSN 0, MO "1234"
	m.wantError(CodeMSNRange, b)
	m.untouched()
}
