package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestEscape(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "plain, é, 日本": "plain, é, 日本",
		"\x1b]0;title\a\x1b[31m": `\x1b]0;title\a\x1b[31m`, "\u202egpj.exe": `\u202egpj.exe`, "\u009b2J": `\u009b2J`, "\xff\xfe": `\xff\xfe`,
		"a\tb\x00\n": `a\tb\x00\n`, "\U000e0001": `\U000e0001`, "\ufffd": `\ufffd`,
	} {
		if got := Escape(s); got != want {
			t.Errorf("%q becomes %q, not %q", s, got, want)
		}
		if got := Escape(want); got != want {
			t.Errorf("%q becomes %q once more", want, got)
		}
	}
}

func TestNamesAndColumns(t *testing.T) {
	for s, want := range map[string][2]string{"": {"", ""}, "a b": {"a b", "a b"}, "a\x1b": {`"a\x1b"`, "a?"}, "\xff": {`"\xff"`, "?"}} {
		if got := [2]string{Name(s), Column(s)}; got != want {
			t.Errorf("%q becomes %q, not %q", s, got, want)
		}
	}
}

// What JSON returns can be printed, and means what was encoded.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[31m\a\x7f", "\u202egpj.exe", "\u009b2J", "\xff", "\U000e0001\"\\\n", "\u2028<>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded, err := json.MarshalIndent(map[string]string{"name": s}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got := JSON(encoded)
		if strings.ContainsFunc(string(got), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			t.Errorf("%q becomes %q", encoded, got)
		}
		var before, after map[string]string
		if json.Unmarshal(encoded, &before) != nil || json.Unmarshal(got, &after) != nil || before["name"] != after["name"] {
			t.Errorf("%q becomes %q", encoded, got)
		}
	})
}
