// Package docs has no code: it checks that the pages here tell the truth.
package docs

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urnic/conformance/catalogue"
)

// A row is a row of the table of requirements.
type row struct {
	id, clause, requirement, test string
}

func rows(t *testing.T) []row {
	t.Helper()
	f, err := os.Open("requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []row
	for s := bufio.NewScanner(f); s.Scan(); {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(s.Text(), "| "), " |"), " | ")
		if len(cells) == 4 && regexp.MustCompile(`^\d{4}-`).MatchString(cells[0]) {
			out = append(out, row{cells[0], cells[1], cells[2], cells[3]})
		} else if strings.HasPrefix(s.Text(), "| ") && len(cells) != 4 {
			t.Errorf("a row with %d cells: %s", len(cells), s.Text())
		}
	}
	return out
}

// A testFunc is a test as the source has it: its name, and the texts in it that
// may name subtests.
type testFunc struct{ strings map[string]bool }

// tests returns the tests of a package and of the packages below it.
func tests(t *testing.T, pkg string) map[string]testFunc {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no package %s: %v", pkg, err)
	}
	out := map[string]testFunc{}
	texts := map[string]bool{} // of all the package: a subtest may be named by what it tests
	fset := token.NewFileSet()
	for _, name := range files {
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				texts[strings.ReplaceAll(strings.Trim(lit.Value, "\"`"), " ", "_")] = true
			}
			return true
		})
		for _, d := range f.Decls {
			if !strings.HasSuffix(name, "_test.go") {
				break
			}
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				out[fn.Name.Name] = testFunc{texts}
			}
		}
	}
	return out
}

// named is how a page names a test: package, name and subtest.
var named = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9_]*)(?:/([^`]+))?`")

func TestEveryTestNamedExists(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	cache := map[string]map[string]testFunc{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			pkg, name, sub := m[1], m[2], m[3]
			if cache[pkg] == nil {
				cache[pkg] = tests(t, pkg)
			}
			fn, ok := cache[pkg][name]
			if !ok {
				t.Errorf("%s: there is no %s.%s", page, pkg, name)
			} else if sub != "" && !fn.strings[sub] {
				t.Errorf("%s: %s.%s has no subtest %s", page, pkg, name, sub)
			}
		}
	}
}

func TestEveryRequirementNamesATest(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows(t) {
		if seen[r.id] {
			t.Errorf("%s stands there twice", r.id)
		}
		seen[r.id] = true
		if strings.HasPrefix(r.test, "not ours: ") {
			continue
		}
		if !named.MatchString(r.test) {
			t.Errorf("%s names no test: %s", r.id, r.test)
		}
	}
	for rfc, least := range map[string]int{"5041": 100, "5044": 90, "5040": 110, "6581": 40, "8166": 70} {
		n := 0
		for id := range seen {
			if strings.HasPrefix(id, rfc+"-") {
				n++
			}
		}
		if n < least {
			t.Errorf("RFC %s has %d rows; there were more than %d", rfc, n, least)
		}
	}
}

// The table of requirements and the catalogue of clauses tell the same: what RFC
// 5041, 5044, 5040, 6581, 7306, 8166, 8797 and 8167 make a MUST or MUST NOT.
func TestRequirementsAreTheBindingClauses(t *testing.T) {
	required := rows(t)
	rfcs := []string{"5041", "5044", "5040", "6581", "7306", "8166", "8797", "8167"}
	for _, rfc := range rfcs {
		t.Run("RFC "+rfc, func(t *testing.T) {
			listed := map[string]bool{}
			for _, r := range required {
				if !strings.HasPrefix(r.id, rfc+"-") {
					continue
				}
				listed["rfc"+r.id] = true
				c, ok := catalogue.Lookup("rfc" + r.id)
				if !ok {
					t.Errorf("%s is no clause of the catalogue", r.id)
					continue
				}
				if r.requirement != c.Summary {
					t.Errorf("%s: the page says %q, the catalogue %q", r.id, r.requirement, c.Summary)
				}
				if r.clause != c.Cite() {
					t.Errorf("%s: the page cites %q, the catalogue %q", r.id, r.clause, c.Cite())
				}
				if !c.Level.Binding() {
					t.Errorf("%s is a requirement, but %s in the catalogue", r.id, c.Level)
				}
			}
			clauses := 0
			for _, c := range catalogue.All() {
				if c.RFC() != "RFC "+rfc {
					continue
				}
				clauses++
				if c.Level.Binding() && !listed[c.ID] {
					t.Errorf("%s (%s) is no requirement: %s", c.ID, c.Level, c.Summary)
				}
			}
			if clauses == 0 || len(listed) == 0 {
				t.Errorf("%d clauses and %d requirements", clauses, len(listed))
			}
		})
	}
	for _, r := range required {
		if rfc, _, _ := strings.Cut(r.id, "-"); !slices.Contains(rfcs, rfc) {
			t.Errorf("%s: RFC %s is not compared with the catalogue", r.id, rfc)
		}
	}
}

// Links in the pages lead to files and headings that exist.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, top...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: %v", page, target, err)
			} else if anchor != "" && !headings(t, file)[anchor] {
				t.Errorf("%s: %s has no heading #%s", page, file, anchor)
			}
		}
	}
}

// headings returns the anchors of a page.
func headings(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	drop := regexp.MustCompile(`[^a-z0-9 _-]`)
	for line := range strings.SplitSeq(string(text), "\n") {
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			out[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), ""), " ", "-")] = true
		}
	}
	return out
}
