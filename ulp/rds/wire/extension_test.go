package wire

import "testing"

func TestExtensionsLayout(t *testing.T) {
	for _, tt := range []struct {
		name string
		x    Extensions
		want [ExtensionLen]byte
		text string
	}{
		{"none", Extensions{}, [16]byte{}, ""},
		{"version", Extensions{Has: 1 << ExtVersion, Version: 0x301}, [16]byte{1, 0, 0, 3, 1}, "VERSION=769"},
		{"rdma", Extensions{Has: 1 << ExtRDMA, RKey: 0x4b187800}, [16]byte{2, 0x4b, 0x18, 0x78, 0}, "RDMA=0x4b187800"},
		{"dest", Extensions{Has: 1 << ExtRDMADest, Dest: 0x404b187800}, [16]byte{3, 0x4b, 0x18, 0x78, 0, 0, 0, 0, 0x40}, "RDMA_DEST=0x4b187800+64"},
		{"written", Extensions{Has: 1 << ExtRDMABytes, Bytes: 4096, Write: true}, [16]byte{4, 0, 0, 0x10, 0, 1}, "RDMA_BYTES=4096,Write"},
		{"read", Extensions{Has: 1 << ExtRDMABytes, Bytes: 4096, Read: true}, [16]byte{4, 0, 0, 0x10, 0, 2}, "RDMA_BYTES=4096,Read"},
		{
			"an RDMA operation, as by Linux 7.0",
			Extensions{Has: 1<<ExtRDMA | 1<<ExtRDMABytes, RKey: 0x4b187800, Bytes: 1000, Write: true},
			[16]byte{2, 0x4b, 0x18, 0x78, 0, 4, 0, 0, 3, 0xe8, 1},
			"RDMA=0x4b187800 RDMA_BYTES=1000,Write",
		},
		{"paths", Extensions{Has: 1 << ExtNPaths, Paths: 8}, [16]byte{5, 0, 8}, "NPATHS=8"},
		{"generation", Extensions{Has: 1 << ExtGeneration, Generation: 0x01020304}, [16]byte{6, 1, 2, 3, 4}, "GEN_NUM=16909060"},
		{"two", Extensions{Has: 1<<ExtNPaths | 1<<ExtGeneration, Paths: 4, Generation: 7}, [16]byte{5, 0, 4, 6, 0, 0, 0, 7}, "NPATHS=4 GEN_NUM=7"},
		{
			"a probe of Linux 7.0",
			Extensions{Has: 1<<ExtNPaths | 1<<ExtGeneration | 1<<ExtSportIdx, Paths: 8, Generation: 7},
			[16]byte{5, 0, 8, 6, 0, 0, 0, 7, 8, 0},
			"NPATHS=8 GEN_NUM=7 SPORT_IDX=0",
		},
		{"urnic", Extensions{Has: 1 << ExtUrnic}, [16]byte{15}, "URNIC"},
		{
			"a probe of urnic",
			Extensions{Has: 1<<ExtNPaths | 1<<ExtGeneration | 1<<ExtSportIdx | 1<<ExtUrnic, Paths: 8, Generation: 7},
			[16]byte{5, 0, 8, 6, 0, 0, 0, 7, 8, 0, 15},
			"NPATHS=8 GEN_NUM=7 SPORT_IDX=0 URNIC",
		},
	} {
		b, err := tt.x.Encode()
		if err != nil || b != tt.want {
			t.Errorf("%s: %x, %v; want %x", tt.name, b, err, tt.want)
		}
		got, err := ParseExtensions(tt.want)
		if err != nil || got != tt.x || got.String() != tt.text {
			t.Errorf("%s: %+v (%v), %v; want %+v (%s)", tt.name, got, &got, err, tt.x, tt.text)
		}
	}
}

// A cookie is what Linux gives to programs: the offset in the high half.
func TestCookie(t *testing.T) {
	c := NewCookie(0x4b187800, 0x40)
	if c != 0x404b187800 || c.RKey() != 0x4b187800 || c.Offset() != 0x40 {
		t.Errorf("%#x, R_Key %#x, offset %#x", uint64(c), c.RKey(), c.Offset())
	}
}

// What a later kernel puts in front of something else does not hide it.
func TestLaterExtensionsHaveTheirLengths(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    [ExtensionLen]byte
		want Extensions
		text string
	}{
		{
			"SPORT_IDX",
			[16]byte{8, 1, 6, 0, 0, 0, 7},
			Extensions{Has: 1<<ExtSportIdx | 1<<ExtGeneration, SportIdx: 1, Generation: 7},
			"GEN_NUM=7 SPORT_IDX=1",
		},
		{
			"RDMA_BYTES",
			[16]byte{4, 0, 0, 0, 9, 2, 0xff, 0xff, 0xff, 6, 0, 0, 0, 7},
			Extensions{Has: 1<<ExtRDMABytes | 1<<ExtGeneration, Bytes: 9, Read: true, Generation: 7},
			"RDMA_BYTES=9,Read GEN_NUM=7",
		},
		{
			"CAP_BITS",
			[16]byte{7, 0, 0, 0, 1, 6, 0, 0, 0, 7},
			Extensions{Has: 1<<ExtCapBits | 1<<ExtGeneration, Generation: 7},
			"GEN_NUM=7 CAP_BITS",
		},
		{
			"CSUM",
			[16]byte{9, 1, 2, 3, 4, 1, 0, 0, 0, 2, 0, 0, 0, 3},
			Extensions{Has: 1<<ExtChecksum | 1<<ExtRDMA, RKey: 3},
			"RDMA=0x00000003 CSUM",
		},
		{
			"URNIC",
			[16]byte{15, 6, 0, 0, 0, 7},
			Extensions{Has: 1<<ExtUrnic | 1<<ExtGeneration, Generation: 7},
			"GEN_NUM=7 URNIC",
		},
	} {
		if x, err := ParseExtensions(tt.b); err != nil || x != tt.want || x.String() != tt.text {
			t.Errorf("%s: %+v (%v), %v; want %+v (%s)", tt.name, x, &x, err, tt.want, tt.text)
		}
	}
}

// What is only skipped is not sent.
func TestSkippedExtensionsAreNotEncoded(t *testing.T) {
	x := Extensions{Has: 1<<ExtCapBits | 1<<ExtChecksum | 1<<10 | 1<<14 | 1<<ExtUrnic}
	if b, err := x.Encode(); err != nil || b != [16]byte{15} {
		t.Errorf("%x, %v", b, err)
	}
}

func TestUnknownExtensionsAreSkippedAsLinuxDoes(t *testing.T) {
	// Types 10 and 14 have no data, and 16 ends them.
	x, err := ParseExtensions([16]byte{10, 14, 5, 0, 2, 16, 6, 0, 0, 0, 1})
	if err != nil || !x.With(10) || !x.With(14) || x.Paths != 2 || x.With(ExtGeneration) || x.With(16) {
		t.Errorf("%+v, %v", x, err)
	}
	if got := x.String(); got != "NPATHS=2 type 10 type 14" {
		t.Errorf("%q", got)
	}
	// The end, and what stands behind it.
	if x, err := ParseExtensions([16]byte{5, 0, 2, 0, 6, 0, 0, 0, 1}); err != nil || x.Has != 1<<ExtNPaths {
		t.Errorf("%+v, %v", x, err)
	}
	// The last byte that there is.
	if x, err := ParseExtensions([16]byte{3, 0, 0, 0, 1, 0, 0, 0, 2, 2, 0, 0, 0, 3, 11, 12}); err != nil || x.RKey != 3 || !x.With(12) {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestExtensionsThatAreRefused(t *testing.T) {
	for name, b := range map[string][ExtensionLen]byte{
		"data beyond the end": {3, 0, 0, 0, 1, 0, 0, 0, 2, 10, 10, 3},
		"no byte of its data": {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 8},
		"twice":               {5, 0, 2, 5, 0, 2},
	} {
		if x, err := ParseExtensions(b); fault(err) != WrongExtension {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
	x := Extensions{Has: 1<<ExtRDMADest | 1<<ExtRDMA | 1<<ExtNPaths}
	if b, err := x.Encode(); fault(err) != WrongExtension {
		t.Errorf("17 bytes were put into %x, %v", b, err)
	}
}

// Types that are later than the document are known.
func TestUnknownExtension(t *testing.T) {
	for _, tt := range []struct {
		b    []byte
		want ExtensionType
	}{
		{nil, ExtNone},
		{[]byte{5, 0, 8, 6, 9, 9, 9, 9}, ExtNone}, // data are not looked at
		{[]byte{4, 0, 0, 0, 1, 1, 10, 10, 10, 5, 10, 10}, ExtNone},
		{[]byte{7, 10, 10, 10, 10, 8, 10, 15}, ExtNone},
		{[]byte{9, 10, 10, 10, 10, 10, 10, 10, 10, 15}, ExtNone},
		{[]byte{5, 0, 8, 10}, 10},
		{[]byte{200}, 200},
		{[]byte{0, 10}, ExtNone}, // behind the end
		{[]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3}, ExtNone},
	} {
		var b [ExtensionLen]byte
		copy(b[:], tt.b)
		if got := UnknownExtension(b); got != tt.want {
			t.Errorf("%x: %v, want %v", tt.b, got, tt.want)
		}
	}
}
