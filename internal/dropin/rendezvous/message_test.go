package rendezvous

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
)

// examples are messages and their bytes, those of docs/rendezvous.md among them.
var examples = map[string]Message{
	"7552445601010001000040010000800100a1b2c300000007" + "0123456789abcdef": {
		Kind: Ask, From: 0x4001, To: 0x8001, PSN: 0xa1b2c3, HasPSN: true, RNRRetry: 7, Tie: 0x0123456789abcdef,
	},
	"755244560102000000008001000040010000000000000000" + "0000000000000000": {Kind: Agree, From: 0x8001, To: 0x4001},
	"755244560103000000008001000040010000000000020000" + "0000000000000000": {Kind: Refuse, From: 0x8001, To: 0x4001, Reason: NoSuchQP},
	"7552445601010001" + "00ffffff" + "00000000" + "0000000000000000" + "ffffffffffffffff": {
		Kind: Ask, From: 0xffffff, HasPSN: true, Tie: 1<<64 - 1,
	},
}

func octets(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMessagesHaveOneForm(t *testing.T) {
	for s, want := range examples {
		if got, err := Parse(octets(t, s)); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", s, got, err, want)
		}
		if b, err := want.AppendBinary([]byte{7}); err != nil || hex.EncodeToString(b) != "07"+s {
			t.Errorf("%+v: %x, %v; want 07%s", want, b, err, s)
		}
	}
}

// The page shows the bytes that are compared here.
func TestThePageShowsTheOctets(t *testing.T) {
	page, err := os.ReadFile("../../../docs/rendezvous.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for s := range examples {
		if bytes.Contains(page, []byte(hexLines(octets(t, s)))) {
			shown++
		}
	}
	if shown != 2 {
		t.Errorf("the page shows %d of the examples; want 2", shown)
	}
}

// hexLines writes bytes as the page does: 16 in a line, indented.
func hexLines(b []byte) string {
	var out strings.Builder
	for i, c := range b {
		switch {
		case i > 0 && i%16 == 0:
			out.WriteString("\n    ")
		case i > 0 && i%4 == 0:
			out.WriteString("  ")
		case i > 0:
			out.WriteByte(' ')
		}
		out.WriteString(hex.EncodeToString([]byte{c}))
	}
	return out.String()
}

func TestOtherFormsAreRefused(t *testing.T) {
	good := octets(t, "7552445601010001000040010000800100a1b2c3000000000123456789abcdef")
	for name, spoil := range map[string]func(b []byte) []byte{
		"empty":             func([]byte) []byte { return nil },
		"another protocol":  func(b []byte) []byte { b[0]++; return b },
		"another version":   func(b []byte) []byte { b[4]++; return b },
		"version 0":         func(b []byte) []byte { b[4] = 0; return b },
		"cut":               func(b []byte) []byte { return b[:31] },
		"magic only":        func(b []byte) []byte { return b[:4] },
		"one more":          func(b []byte) []byte { return append(b, 0) },
		"kind 0":            func(b []byte) []byte { b[5] = 0; return b },
		"kind 4":            func(b []byte) []byte { b[5] = 4; return b },
		"unknown flag":      func(b []byte) []byte { b[7] = 3; return b },
		"other flag":        func(b []byte) []byte { b[6] = 1; return b },
		"PSN without flag":  func(b []byte) []byte { b[7] = 0; return b },
		"From of 25 bits":   func(b []byte) []byte { b[8] = 1; return b },
		"To of 25 bits":     func(b []byte) []byte { b[12] = 1; return b },
		"PSN of 25 bits":    func(b []byte) []byte { b[16] = 1; return b },
		"reason of Ask":     func(b []byte) []byte { b[21] = 1; return b },
		"Refuse, no reason": func(b []byte) []byte { b[5] = byte(Refuse); return b },
		"reserved":          func(b []byte) []byte { b[22] = 1; return b },
		"retries of 4 bits": func(b []byte) []byte { b[23] = 8; return b },
		"retries, no PSN":   func(b []byte) []byte { clear(b[16:20]); b[7], b[23] = 0, 1; return b },
	} {
		var e *MessageError
		if m, err := Parse(spoil(bytes.Clone(good))); !errors.As(err, &e) {
			t.Errorf("%s: %+v, %v; want a *MessageError", name, m, err)
		}
	}
	for _, m := range []Message{{}, {Kind: Ask, From: 1 << 24}, {Kind: Ask, To: 1 << 24}, {Kind: Ask, PSN: 1 << 24, HasPSN: true}, {Kind: Ask, PSN: 1}, {Kind: Ask, RNRRetry: 1}, {Kind: Ask, HasPSN: true, RNRRetry: 8}, {Kind: Ask, Reason: NoPlace}, {Kind: Refuse}} {
		var e *MessageError
		if b, err := m.AppendBinary(nil); !errors.As(err, &e) || b != nil {
			t.Errorf("%+v: %x, %v; want a *MessageError", m, b, err)
		}
	}
}

func TestReasonsSaySomething(t *testing.T) {
	for _, r := range []Reason{NotUnderstood, NoSuchQP, NoPlace, 99} {
		if r.String() == "" || (r == 99) != (r.String() == "reason 99") {
			t.Errorf("%d: %q", uint16(r), r)
		}
	}
}

// What Parse takes has one form, and no other bytes have it.
func FuzzParse(f *testing.F) {
	for s := range examples {
		f.Add(octets(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		again, err := m.AppendBinary(nil)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x is %+v, which is %x, %v", b, m, again, err)
		}
	})
}
