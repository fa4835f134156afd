package mutants

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Apply returns the files that the mutant changes, as they are after its edits and
// those of its Base. The keys are the names within the module, whose root is given.
// It fails if the text of an edit does not occur exactly once, or two of them
// overlap: the stack has changed, and the mutant must follow.
func (m *Mutant) Apply(root string) (map[string][]byte, error) {
	edits := m.Edits
	if m.Base != nil {
		edits = slices.Concat(m.Base.Edits, m.Edits)
	}
	places := map[string][]place{}
	sources := map[string]string{}
	for _, e := range edits {
		if _, ok := sources[e.File]; !ok {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			sources[e.File] = string(b)
		}
		src := sources[e.File]
		if n := strings.Count(src, e.Old); n != 1 {
			return nil, fmt.Errorf("mutant %s: the text to edit occurs %d times in %s, it must occur once:\n%s", m.Name, n, e.File, e.Old)
		}
		places[e.File] = append(places[e.File], place{strings.Index(src, e.Old), e})
	}
	out := map[string][]byte{}
	for file, edits := range places {
		slices.SortFunc(edits, func(a, b place) int { return cmp.Compare(a.at, b.at) })
		var b []byte
		done := 0
		for _, p := range edits {
			if p.at < done {
				return nil, fmt.Errorf("mutant %s: two edits of %s overlap", m.Name, file)
			}
			b = append(b, sources[file][done:p.at]...)
			b = append(b, p.New...)
			done = p.at + len(p.Old)
		}
		out[file] = append(b, sources[file][done:]...)
	}
	return out, nil
}

// A place is an edit and where in its file it begins.
type place struct {
	at int
	Edit
}
