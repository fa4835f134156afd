package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The program of docs/go.md runs in a module beside urnic, by each way that the page shows, with the commands that it shows.
func TestProgramsUseThePackagesWithoutAHost(t *testing.T) {
	page := read(t, "docs/go.md")
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(page)
	ways := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1)
	if program == nil || len(ways) != 2 {
		t.Fatalf("the page has %d programs and %d ways", len(program), len(ways))
	}
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		name, _, _ := strings.Cut(way[1], " .")
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(checkout, filepath.Join(dir, "urnic")); err != nil {
				t.Fatal(err)
			}
			mine := filepath.Join(dir, "mine")
			if err := os.Mkdir(mine, 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"go.mod": "module mine\n\ngo 1.26.0\n", "main.go": program[1]} {
				if err := os.WriteFile(filepath.Join(mine, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", way[1])
			cmd.Dir = mine
			cmd.Env = append(os.Environ(), "PWD="+mine, "GOWORK=", "GOFLAGS=-buildvcs=false")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "a peer may read 4096 bytes: 4096\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
