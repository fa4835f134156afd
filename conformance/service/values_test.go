package service

import (
	"encoding/json"
	"testing"
)

func TestNumbersKeepAllTheirBits(t *testing.T) {
	for text, want := range map[string]uint64{
		`"0xffffffffffffffff"`: 1<<64 - 1, `"0x0"`: 0, `0`: 0, `9007199254740992`: 1 << 53, `"0xABC"`: 0xABC, `null`: 0,
	} {
		var u Uint64
		check(t, json.Unmarshal([]byte(text), &u))
		if uint64(u) != want {
			t.Errorf("%s is %d", text, u)
		}
	}
	for _, text := range []string{`9007199254740993`, `-1`, `1.5`, `"12"`, `"0x"`, `"0x1ffffffffffffffff"`, `"0X1"`, `"0x+1"`, `{}`, `true`} {
		if json.Unmarshal([]byte(text), new(Uint64)) == nil {
			t.Errorf("%s passes as 64 bits", text)
		}
	}
	var s STag
	if json.Unmarshal([]byte(`"0x100000000"`), &s) == nil || json.Unmarshal([]byte(`4294967296`), &s) == nil {
		t.Error("33 bits pass as an STag")
	}
	if b := must(json.Marshal(map[string]any{"s": STag(0x12), "u": Uint64(1 << 63)}))(t); string(b) != `{"s":"0x00000012","u":"0x8000000000000000"}` {
		t.Errorf("they are written as %s", b)
	}
}

func TestOctetsAreHexadecimal(t *testing.T) {
	var h Hex
	check(t, json.Unmarshal([]byte(`"00fFAb"`), &h))
	if h.String() != "00ffab" || string(must(json.Marshal(h))(t)) != `"00ffab"` {
		t.Errorf("octets %v", h)
	}
	for _, text := range []string{`"0"`, `"zz"`, `12`, `[1]`, `"`} {
		if json.Unmarshal([]byte(text), &h) == nil {
			t.Errorf("%s passes as octets", text)
		}
	}
}

func TestPatternIsAsDocumented(t *testing.T) {
	p := Pattern(250, 600)
	for i, b := range p {
		if int(b) != (250+i+i/256)%256 {
			t.Fatalf("octet %d is %d", i, b)
		}
	}
}
