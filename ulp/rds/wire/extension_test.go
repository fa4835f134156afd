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
		{"bytes", Extensions{Has: 1 << ExtRDMABytes, Bytes: 4096, Write: true}, [16]byte{4, 0, 0, 0x10, 0, 1}, "RDMA_BYTES=4096"},
		{"paths", Extensions{Has: 1 << ExtNPaths, Paths: 8}, [16]byte{5, 0, 8}, "NPATHS=8"},
		{"generation", Extensions{Has: 1 << ExtGeneration, Generation: 0x01020304}, [16]byte{6, 1, 2, 3, 4}, "GEN_NUM=16909060"},
		{"two", Extensions{Has: 1<<ExtNPaths | 1<<ExtGeneration, Paths: 4, Generation: 7}, [16]byte{5, 0, 4, 6, 0, 0, 0, 7}, "NPATHS=4 GEN_NUM=7"},
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

func TestUnknownExtensionsAreSkippedAsLinuxDoes(t *testing.T) {
	// Types 7 and 15 have no data, and 16 ends them.
	x, err := ParseExtensions([16]byte{7, 15, 5, 0, 2, 16, 6, 0, 0, 0, 1})
	if err != nil || !x.With(7) || !x.With(15) || x.Paths != 2 || x.With(ExtGeneration) || x.With(16) {
		t.Errorf("%+v, %v", x, err)
	}
	if got := x.String(); got != "NPATHS=2 type 7 type 15" {
		t.Errorf("%q", got)
	}
	// The end, and what stands behind it.
	if x, err := ParseExtensions([16]byte{5, 0, 2, 0, 6, 0, 0, 0, 1}); err != nil || x.Has != 1<<ExtNPaths {
		t.Errorf("%+v, %v", x, err)
	}
	// The last byte that there is.
	if x, err := ParseExtensions([16]byte{3, 0, 0, 0, 1, 0, 0, 0, 2, 4, 0, 0, 0, 3, 1, 9}); err != nil || x.Bytes != 3 || !x.With(9) {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestExtensionsThatAreRefused(t *testing.T) {
	for name, b := range map[string][ExtensionLen]byte{
		"data beyond the end": {3, 0, 0, 0, 1, 0, 0, 0, 2, 7, 7, 3},
		"no byte of its data": {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 5},
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

// Type 4 is later than the document, and known.
func TestUnknownExtension(t *testing.T) {
	for _, tt := range []struct {
		b    []byte
		want ExtensionType
	}{
		{nil, ExtNone},
		{[]byte{5, 0, 8, 6, 9, 9, 9, 9}, ExtNone}, // data are not looked at
		{[]byte{4, 0, 0, 0, 1, 1, 3, 7, 7, 7, 7, 7, 7, 7, 7}, ExtNone},
		{[]byte{5, 0, 8, 7}, 7},
		{[]byte{200}, 200},
		{[]byte{0, 9}, ExtNone}, // behind the end
		{[]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3}, ExtNone},
	} {
		var b [ExtensionLen]byte
		copy(b[:], tt.b)
		if got := UnknownExtension(b); got != tt.want {
			t.Errorf("%x: %v, want %v", tt.b, got, tt.want)
		}
	}
}
