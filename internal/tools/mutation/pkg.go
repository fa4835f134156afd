package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
)

// A pkg is what go list tells of the package that is measured.
type pkg struct {
	path      string
	dir, root string   // of the package and its module
	files     []string // paths of the files that are not tests
	goVersion string
	exports   map[string]string // the export data of what is imported, by path
}

// selectorPath is the path of the file that selects the mutant; it exists in the overlay
// only.
func (p *pkg) selectorPath() string { return filepath.Join(p.dir, "mutant_selector.go") }

// load asks go list for a package; dir is where the pattern counts.
func load(dir, pattern string) (*pkg, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,CgoFiles,Export,Module,DepOnly,Standard", pattern,
		"os", "strconv", "sync/atomic") // which the code that selects a mutant imports
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", pattern, err, stderr.Bytes())
	}
	p := &pkg{exports: map[string]string{}}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l struct {
			ImportPath, Dir, Export string
			GoFiles, CgoFiles       []string
			Module                  *struct{ Dir, GoVersion string }
			DepOnly, Standard       bool
		}
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", pattern, err)
		}
		p.exports[l.ImportPath] = l.Export
		if l.DepOnly || l.Standard {
			continue
		}
		if p.path != "" {
			return nil, fmt.Errorf("%s are several packages; name one", pattern)
		}
		if l.Module == nil || len(l.CgoFiles) > 0 {
			return nil, fmt.Errorf("%s is no package of a module in Go alone", pattern)
		}
		p.path, p.dir, p.root, p.goVersion = l.ImportPath, l.Dir, l.Module.Dir, "go"+l.Module.GoVersion
		for _, f := range l.GoFiles {
			p.files = append(p.files, filepath.Join(l.Dir, f))
		}
	}
	slices.Sort(p.files)
	if p.path == "" {
		return nil, fmt.Errorf("there is no package %s in a module", pattern)
	}
	return p, nil
}
