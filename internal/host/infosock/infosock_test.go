package infosock

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"urnic/internal/test/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// What a function returns is asked for anew each time, and sockets of two kinds do not mix.
func TestKinds(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	type count struct{ N int }
	n := 0
	a, err := Serve("", "aaa", func() any { n++; return count{n} })
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Serve("", "bbb", func() any { return "text" })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if paths, err := List("", "aaa"); err != nil || !slices.Equal(paths, []string{a.Path()}) || filepath.Dir(a.Path()) != Dir() {
		t.Errorf("%q, %v", paths, err)
	}
	for want := 1; want < 4; want++ {
		var got count
		if err := Ask(t.Context(), a.Path(), &got); err != nil || got.N != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := Ask(t.Context(), b.Path(), new(count)); !errors.Is(err, ErrAnswer) {
		t.Errorf("an answer of another form: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(a.Path()); err == nil {
		t.Error("the socket is still there")
	}
}
