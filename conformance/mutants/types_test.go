package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// An edit may still apply, and no longer compile, because the code around it has changed.
// Without this test only the campaign would tell, which takes long.
func TestMutantsTypeCheck(t *testing.T) {
	s := loadStack(t)
	for _, m := range All() {
		files, err := m.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		dirs := map[string]bool{}
		for name := range files {
			dirs[path.Dir(name)] = true
		}
		for dir := range dirs {
			if err := s.check(dir, files); err != nil {
				t.Errorf("%s does not compile: %v", m.Name, err)
			}
		}
	}
}

// A stack is what is needed to check the types of packages of the module.
type stack struct {
	files   map[string][]string // of packages, within the module
	imports types.Importer
	fset    *token.FileSet
	parsed  map[string]*ast.File // those without a fault, by their names
}

// loadStack has the go command build the export data of the stack.
func loadStack(t *testing.T) *stack {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Standard", "./conformance/mutants/target")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{files: map[string][]string{}, fset: token.NewFileSet(), parsed: map[string]*ast.File{}}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			Standard                bool
		}
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[l.ImportPath] = l.Export
		if l.Standard {
			continue
		}
		dir, err := filepath.Rel(top, l.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range l.GoFiles {
			s.files[filepath.ToSlash(dir)] = append(s.files[filepath.ToSlash(dir)], path.Join(filepath.ToSlash(dir), f))
		}
	}
	s.imports = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return s
}

// check checks a package with some of its files changed.
func (s *stack) check(dir string, changed map[string][]byte) error {
	if len(s.files[dir]) == 0 {
		return fmt.Errorf("the target has no package %s", dir)
	}
	var files []*ast.File
	for _, name := range s.files[dir] {
		f := s.parsed[name]
		if b, ok := changed[name]; ok || f == nil {
			var src any
			if ok {
				src = b
			}
			var err error
			if f, err = parser.ParseFile(s.fset, filepath.Join(root, name), src, parser.SkipObjectResolution); err != nil {
				return err
			}
			if !ok {
				s.parsed[name] = f
			}
		}
		files = append(files, f)
	}
	_, err := (&types.Config{Importer: s.imports}).Check("urnic/"+dir, s.fset, files, nil)
	return err
}
