package pagetest

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/page"
)

// tools are what all probes share.
const tools = `
const seen = (e) => e.checkVisibility({ checkVisibilityCSS: true, contentVisibilityAuto: false });
const later = () => new Promise((done) => setTimeout(done, 50));
const until = async (f) => { for (let i = 0; i < 200 && !f(); i++) await later(); };
const out = {};
const end = () => { const e = document.createElement("pre"); e.id = "probe"; e.textContent = JSON.stringify(out); document.body.append(e); };
`

// Browse opens a page from a file at a place, "" or "#…". A probe, a script that the page's policy is told to
// allow, looks at it once the page's own script has run, and fills out, which Browse decodes into v. The browser must
// have nothing to complain of.
func Browse(t *testing.T, text, place, probe string, v any, flags ...string) {
	t.Helper()
	if complaints := Look(t, text, place, probe, v, flags...); len(complaints) > 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}

// Look is Browse, and returns the browser's complaints.
func Look(t *testing.T, text, place, probe string, v any, flags ...string) (complaints []string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	script := "(async () => {" + tools + "await ready;" + probe + "\nend(); })();"
	text = strings.Replace(text, "script-src ", "script-src '"+page.Hash(script)+"' ", 1)
	text = strings.Replace(text, "</body>", "<script>"+script+"</script></body>", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// It is killed if it hangs, which it has no reason to.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	address := url.URL{Scheme: "file", Path: file}
	cmd := exec.CommandContext(ctx, browser(t), slices.Concat([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--user-data-dir=" + filepath.Join(dir, "profile"), "--virtual-time-budget=20000", "--dump-dom",
	}, flags, []string{address.String() + place})...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.WaitDelay = 5 * time.Second
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.Bytes())
	}
	for l := range strings.Lines(errs.String()) {
		if strings.Contains(l, "CONSOLE") {
			complaints = append(complaints, l)
		}
	}
	m := regexp.MustCompile(`(?s)<pre id="probe">(.*?)</pre>`).FindSubmatch(dom)
	if m == nil {
		t.Fatalf("the probe said nothing; the browser said\n%s", errs.Bytes())
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), v); err != nil {
		t.Fatal(err)
	}
	return complaints
}

// browser returns the path of Chromium.
func browser(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: install the package chromium", err)
		}
		t.Skipf("%v: install the package chromium", err)
	}
	return path
}
