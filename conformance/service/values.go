package service

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Hex is bytes, in JSON a string of hexadecimal digits.
type Hex []byte

// String returns the digits.
func (h Hex) String() string { return hex.EncodeToString(h) }

// MarshalJSON implements json.Marshaler.
func (h Hex) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 2*len(h)+2)
	b = append(b, '"')
	b = hex.AppendEncode(b, h)
	return append(b, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hex) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("octets are a string of hexadecimal digits, not %s", Shorten(b))
	}
	digits := b[1 : len(b)-1]
	octets := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(octets, digits); err != nil {
		return fmt.Errorf("octets are a string of hexadecimal digits: %w", err)
	}
	*h = octets
	return nil
}

// A Uint64 is a number of up to 64 bits. Many JSON parsers keep no more than 53
// bits of a number, so it is a string when it is sent, such as "0x7f0012345678".
// A plain number is understood up to 2^53.
type Uint64 uint64

// String returns the number as it stands in JSON.
func (u Uint64) String() string { return "0x" + strconv.FormatUint(uint64(u), 16) }

// MarshalJSON implements json.Marshaler.
func (u Uint64) MarshalJSON() ([]byte, error) { return []byte(`"` + u.String() + `"`), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (u *Uint64) UnmarshalJSON(b []byte) error {
	v, err := number(b, 64)
	*u = Uint64(v)
	return err
}

// An STag names memory. In JSON it is a string such as "0x12345678", or a number.
type STag uint32

// String returns the STag as it stands in JSON.
func (s STag) String() string { return fmt.Sprintf("0x%08x", uint32(s)) }

// MarshalJSON implements json.Marshaler.
func (s STag) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (s *STag) UnmarshalJSON(b []byte) error {
	v, err := number(b, 32)
	*s = STag(v)
	return err
}

// exact is up to where every JSON parser keeps numbers as they are.
const exact = 1 << 53

// number parses a number or a string with a hexadecimal one.
func number(b []byte, bits int) (uint64, error) {
	if string(b) == "null" {
		return 0, nil
	}
	fail := func() (uint64, error) {
		return 0, fmt.Errorf("%s is not a number of %d bits: say 0 to 2^53, or a string of 0x and hexadecimal digits", Shorten(b), bits)
	}
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return fail()
		}
		digits, ok := strings.CutPrefix(s, "0x")
		v, err := strconv.ParseUint(digits, 16, bits)
		if !ok || err != nil {
			return fail()
		}
		return v, nil
	}
	v, err := strconv.ParseUint(string(b), 10, bits)
	if err != nil || v > exact {
		return fail()
	}
	return v, nil
}

// Shorten returns the beginning of something that is wrong, human-readable.
func Shorten(b []byte) string {
	const most = 40
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

// Pattern returns the bytes with which memory can be filled: byte i of the
// pattern of a seed is (seed + i + i/256) mod 256.
func Pattern(seed uint8, n int) []byte { return PatternAt(seed, 0, n) }

// PatternAt returns n bytes of a pattern from byte off on.
func PatternAt(seed uint8, off, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		at := off + i
		b[i] = seed + byte(at) + byte(at>>8)
	}
	return b
}
