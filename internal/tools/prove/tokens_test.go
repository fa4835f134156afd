package main

import (
	"bytes"
	"testing"
)

func TestCommentsAreNoInput(t *testing.T) {
	const file = "// Package p is.\npackage p\n\n// F does.\nfunc F() int {\n\treturn 1 // one\n}\n"
	for name, tt := range map[string]struct {
		text string
		same bool
	}{
		"comment":         {"// Package p was.\npackage p\n\n// F did.\nfunc F() int {\n\treturn 1 /* 1 */\n}\n", true},
		"no comment":      {"package p\nfunc F() int {\n\treturn 1\n}\n", true},
		"number":          {"package p\nfunc F() int {\n\treturn 2\n}\n", false},
		"name":            {"package p\nfunc G() int {\n\treturn 1\n}\n", false},
		"build tag":       {"//go:build linux\n\npackage p\nfunc F() int {\n\treturn 1\n}\n", false},
		"directive":       {"package p\n//go:noinline\nfunc F() int {\n\treturn 1\n}\n", false},
		"comment in text": {"package p\nfunc F() string {\n\treturn `// a`\n}\n", false},
		"error":           {"// Package p was.\npackage p\nfunc F() int {\n\treturn '\n}\n", false},
	} {
		if same := bytes.Equal(code([]byte(file)), code([]byte(tt.text))); same != tt.same {
			t.Errorf("%s: the same is %v", name, same)
		}
	}
	for _, whole := range []string{
		"package p\n\n// int one(void);\nimport \"C\"\n", "package p\n\nimport (\n\t// int one(void);\n\t\"C\"\n)\n", "package p\n\nfunc ExampleF() {\n\t// Output: 1\n}\n", "package p\n'\n// a\n",
	} {
		if got := code([]byte(whole)); string(got) != whole {
			t.Errorf("%q counts as %q", whole, got)
		}
	}
	if bytes.Equal(code([]byte("package p\nvar s = `// a`\n")), code([]byte("package p\nvar s = `// b`\n"))) {
		t.Error("text that looks like a comment does not count")
	}
}

func TestRecordHoldsWhileOnlyCommentsChange(t *testing.T) {
	c := clone(t, "file")
	p := proof{name: "p", command: []string{"true"}, inputs: []string{"dir", "top/*"}}
	for _, f := range []string{"dir/a.go", "dir/b.txt", "top/a.go"} {
		c.put(t, f, "// a\npackage p\n")
	}
	commit(t, c)
	if err := c.write(p, "passed"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, text string
		holds      bool
	}{
		{"dir/a.go", "// b\npackage p\n", true},
		{"top/a.go", "package p // b\n", true},
		{"dir/a.go", "package q\n", false},
		{"dir/a.go", "package p\n", true},
		{"dir/b.txt", "// b\npackage p\n", false},
	} {
		c.put(t, tt.file, tt.text)
		commit(t, c)
		if _, err := c.holds(p); (err == nil) != tt.holds {
			t.Errorf("%s is %q: %v", tt.file, tt.text, err)
		}
	}
}
