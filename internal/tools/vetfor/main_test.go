package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What only another system's files have wrong is found, in tests too.
func TestFindsFaultsOfOtherSystems(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "vetfor")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const right = "package p\n\nfunc f() string { return \"\" }\n"
	for name, tt := range map[string]struct{ file, text, says string }{
		"right":   {"p_windows.go", right, ""},
		"type":    {"p_windows.go", "package p\n\nfunc f() int { return \"\" }\n", "cannot use"},
		"test":    {"p_windows_test.go", "package p\n\nvar _ = g()\n", "undefined: g"},
		"32 bits": {"p_386.go", "package p\n\nvar n int = 1 << 40\n", "overflows"},
		"vet":     {"p_windows.go", "package p\n\nimport \"fmt\"\n\nfunc f() { fmt.Printf(\"%d\\n\", \"\") }\n", "wrong type"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"go.mod": "module p\n\ngo 1.26\n", "p.go": "package p\n", tt.file: tt.text} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, system := range []string{"windows/386", "linux/amd64"} {
				goos, arch, _ := strings.Cut(system, "/")
				cmd := exec.Command(tool, "./...")
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
				out, err := cmd.CombinedOutput()
				if want := tt.says != "" && goos == "windows"; (err != nil) != want || want && !strings.Contains(string(out), tt.says) {
					t.Errorf("%s: %v\n%s", system, err, out)
				}
			}
		})
	}
}
