package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEachOperatorHasItsMutants(t *testing.T) {
	tests := []struct{ code, want string }{
		{"func f(a, b int) bool { x := a < b; return x }", "a < b → a <= b; a < b → a >= b; return x → return !(x)"},
		{"func f(a, b int) bool { return a >= b }", "a >= b → a > b; a >= b → a < b"},
		{"func f(a, b int) bool { return a == b }", "a == b → a != b"},
		{"func f(a, b bool) bool { return a && !b }", "a && !b → a || !b; !b → b"},
		{"func f(a bool) { if a { println(1) } }", "a → !(a); remove: println(1)"},
		{"func f(a bool) { for a { break } }", "a → !(a); remove: break"},
		{"func f(a, b uint8) { g(a&^b, a<<b) }\nfunc g(...uint8) {}", "remove: g(a&^b, a<<b); a&^b → a & b; a<<b → a >> b"},
		{"func f(a int) { a++; a += 2 }", "remove: a++; a++ → a--; remove: a += 2; a += 2 → a -= 2"},
		{"func f(a string) string { a += a; return a + a }", `remove: a += a; return a + a → return ""`},
		{"func f() (int, error) { return 0, nil }", "return 0, nil → return 1, nil"},
		{"func f(e error) (int, error) { return 3, e }", "return 3, e → return 0, e; return 3, e → return 3, nil"},
		{"func f() (bool, *int) { return true, new(int) }", "return true, new(int) → return true, nil; true → false"},
		{"type s struct{ a int }\nfunc f(x s) s { return x }", "return x → return *new(s)"},
		{
			"func f() { for { if g() { return }; continue } }\nfunc g() bool { return g() }",
			"g() → !(g()); remove: return; remove: continue; return g() → return !(g())",
		},
		{"func f(c chan int) { defer close(c); c <- 1; go f(c) }", "remove: defer close(c); remove: c <- 1; remove: go f(c)"},
		{"var on = true", "true → false"},
		{"const k = 1 < 2", ""},
		{"func f() (_ int, err error) { return g() }\nfunc g() (a int, err error) { return }", ""},
		{"import \"sync\"\nfunc f(mu *sync.Mutex) { mu.Lock(); defer mu.Unlock() }", ""},
		{
			"func f(n int) []int { return make([]int, n+1, n*2) }",
			"return make([]int, n+1, n*2) → return nil; n+1 → n - 1",
		},
		{
			"func f() (bad bool) { defer func() { bad = recover() != nil }(); return bad }",
			"remove: defer func() { bad = recover() != nil }(); remove: bad = recover() != nil; return bad → return !(bad)",
		},
		{
			"func f(a []int) { a[0]++; a[0]++ }",
			"remove: a[0]++; a[0]++ → a[0]--; remove: a[0]++ #2; a[0]++ → a[0]-- #2",
		},
		{
			"func f[T any](a []T) int { if len(a) > 0 { return len(a) }; return 0 }",
			"len(a) > 0 → len(a) >= 0; len(a) > 0 → len(a) <= 0; return len(a) → return 0; return 0 → return 1",
		},
		{"func f(a uint8) uint8 { return a / 2 * 0 }", "return a / 2 * 0 → return 0; a / 2 → a * 2"},
	}
	for _, test := range tests {
		t.Run(test.code, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26.0\n", "m.go": "package m\n\n" + test.code + "\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p, err := load(dir, ".")
			if err != nil {
				t.Fatal(err)
			}
			mutants, _, err := instrument(p)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range mutants {
				got = append(got, m.change)
			}
			if all := strings.Join(got, "; "); all != test.want {
				t.Errorf("the mutants are\n%s\nnot\n%s", all, test.want)
			}
		})
	}
}

func TestFunctionsAreNamedWithTheirReceiver(t *testing.T) {
	dir := t.TempDir()
	code := "package m\n\ntype s struct{ n int }\ntype g[T any] struct{ n int }\nfunc (x *s) a() { x.n++ }\n" +
		"func (x s) b() int { return x.n }\nfunc (x *g[T]) c() int { return x.n }\n"
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26.0\n", "m.go": code} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, out := mutate(t, dir, "-list", ".")
	for _, want := range []string{"m.go:5 s.a: x.n++ → x.n--", "m.go:6 s.b: return x.n → return 0", "m.go:7 g.c: return x.n → return 0"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("%q is missing from\n%s", want, out)
		}
	}
}

// A bar in a cell is escaped, as Markdown wants it, and read back.
func TestRowsAreReadAsTheyArePrinted(t *testing.T) {
	k := key{"a/b.go", "T.f", "x || y → x && y"}
	c := cells(strings.TrimSuffix(k.markdown(), " |") + " why a|b |")
	if len(c) != 5 {
		t.Fatalf("a bare bar did not divide a cell: %q", c)
	}
	c = cells(strings.TrimSuffix(k.markdown(), "|") + `why a\|b |`)
	want := []string{"`a/b.go`", "`T.f`", "`x || y → x && y`", "why a|b"}
	if !slices.Equal(c, want) {
		t.Errorf("read %q, not %q", c, want)
	}
}
