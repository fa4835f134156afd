package report

import (
	"slices"
	"strings"
	"testing"

	"urnic/conformance"
	"urnic/internal/page/pagetest"
)

// probeTools are what the probes share: who is seen.
const probeTools = `
const shown = () => [...document.querySelectorAll("li.case")].filter((c) => c.checkVisibility()).map((c) => c.id);
const opened = () => [...document.querySelectorAll("li.case > details[open]")].map((d) => d.parentElement.id);
const filter = document.getElementById("filter");
const set = (name, value) => { filter.elements[name].value = value; filter.dispatchEvent(new Event("input", { bubbles: true })); };
`

func browse(t *testing.T, text, place, probe string, v any, flags ...string) {
	t.Helper()
	pagetest.Browse(t, text, place, probeTools+probe, v, flags...)
}

// The cases of the sample.
const (
	crc      = "rfc5044-4.4-12/crc-one-bit@responder"
	beyondR  = "rfc5041-7.1-4/end-one-octet-beyond@responder"
	beyondI  = "rfc5041-7.1-4/end-one-octet-beyond@initiator"
	after    = "rfc5040-5.4-7/nothing-after-terminate@responder"
	revision = "rfc5044-7.1.1-15/revision-seven@responder"
	foreign  = "rfc5040-8.1.1-8/invalidate-foreign@initiator"
	dvZero   = "rfc5041-4.1-9/dv-zero@responder"
	zeroLen  = "rfc5041-5.2-9/zero-length@initiator"
	ordI     = "rfc6581-9.1-2/ord-above-ird@initiator"
	keyI     = "rfc5044-7.1.1-1/request-key@initiator"
)

// A link shows the cases that it filters, with the one that it names open.
func TestLinkFiltersAndOpensACase(t *testing.T) {
	var got struct {
		Shown, Opened, Texts, Groups []string
		Count                        string
		Hex, Quiet                   bool
	}
	browse(t, asHTML(t, sample(t)), "#"+beyondR+"?verdict=fail&rfc=RFC+5041", `
out.shown = shown(); out.opened = opened();
out.count = document.getElementById("count").textContent;
out.groups = [...document.querySelectorAll(".group h3")].filter(seen).map((h) => h.textContent);
const open = document.querySelector("li.case.linked");
out.texts = [...open.querySelectorAll(".reason, .story dd, .ladder p")].filter(seen).map((e) => e.textContent);
out.hex = [...open.querySelectorAll("pre.hex")].filter((e) => seen(e) && e.textContent.startsWith("0000  00 2a 41 47")).length === 1;
out.quiet = [...open.querySelectorAll("pre")].filter(seen).length === 4; // what isn't wrong is folded
`, &got)
	if want := []string{beyondR, beyondI}; !slices.Equal(got.Shown, want) {
		t.Errorf("shown are %q; want %q", got.Shown, want)
	}
	if !slices.Equal(got.Opened, []string{beyondR}) || got.Count != "2 of 13 cases" || !slices.Equal(got.Groups, []string{"Failed 4"}) {
		t.Errorf("open are %q, the count says %q, the headings %q", got.Opened, got.Count, got.Groups)
	}
	for _, want := range []string{
		"Terminate names another error: DDP Untagged, Invalid MO (0x04) in place of Message too long (0x05)",
		"a Send of 65 octets to a receive buffer of 64",
		"tester: Send, last, QN 0 MSN 1 MO 0, 65 octets",
		"by intent: one octet longer than the buffer",
		"the code is 0x04; 0x05 is due",
		"tester: waits up to 2 s for the buffer's completion",
		"control: completion: receive, flushed; the octets beyond the buffer are as before",
	} {
		if !slices.Contains(got.Texts, want) {
			t.Errorf("%q is not to be seen in %q", want, got.Texts)
		}
	}
	if !got.Hex || !got.Quiet {
		t.Error("the octets of what is wrong, and no others, are to be seen")
	}
}

// A link to a case that passed, and one to a clause, show what was compressed.
func TestCompressedPartsAppearOnDemand(t *testing.T) {
	var got struct {
		Before, Ladder int
		Clause         bool
	}
	browse(t, asHTML(t, sample(t)), "#"+keyI, `
out.ladder = [...document.querySelectorAll("li.case.linked .ladder li.arrow")].filter(seen).length;
out.before = document.querySelectorAll("table.clauses").length;
location.hash = "#clause-rfc5041-7.1-4";
await until(() => document.getElementById("clause-rfc5041-7.1-4"));
await later();
out.clause = seen(document.getElementById("clause-rfc5041-7.1-4"));
`, &got)
	if got.Ladder == 0 || got.Before != 0 || !got.Clause {
		t.Errorf("got %+v", got)
	}
}

// Each control of the filter hides what it says, the address follows, and a case
// that is linked is seen although the filter would hide it.
func TestFilterHidesWhatItSays(t *testing.T) {
	var got map[string][]string
	browse(t, asHTML(t, sample(t)), "", `
out.all = [String(shown().length), ...opened()];
set("q", "UNTAGGED beyond"); out.text = shown();
set("q", "nothing such"); out.none = [...shown(), document.getElementById("none").checkVisibility() ? "said so" : ""];
set("q", "");
set("role", "initiator"); out.role = shown();
set("rfc", "RFC 6581"); out.rfc = shown();
out.address = [location.hash];
filter.reset(); await later(); out.reset = [String(shown().length), location.hash];
set("level", "SHOULD"); out.level = shown();
filter.reset(); await later();
for (const b of filter.elements.verdict) if (b.value !== "inconclusive") b.click();
out.verdict = shown();
location.hash = "#`+dvZero+`"; await later(); out.linked = [...shown(), ...opened()];
document.getElementById("collapse").click(); out.collapsed = opened();
document.getElementById("expand").click(); out.expanded = opened();
document.querySelector(".totals .skipped a").click(); await later(); out.totals = [String(shown().length), ...new Set(shown().map((id) => id.split("-")[0]))];
location.hash = "#rfc5041-7.1-4/end-one-octet-beyond"; await later(); out.norole = shown().slice(0, 1);
location.hash = "#clause-rfc5041-7.1-4"; await later(); out.clause = [document.getElementById("clause-rfc5041-7.1-4").checkVisibility() ? "seen" : "", document.getElementById("clause-rfc5040-5.4-7").checkVisibility() ? "seen" : ""];
location.hash = "#%E0%A4%A?verdict=&rfc=none&q=<b>"; await later(); out.nonsense = shown();
`, &got)
	for name, want := range map[string][]string{
		"all":       {"13"},
		"text":      {beyondR, beyondI},
		"none":      {"said so"},
		"role":      {beyondI, foreign, keyI, zeroLen, ordI},
		"rfc":       {ordI},
		"address":   {"#results?rfc=RFC+6581&role=initiator"},
		"reset":     {"13", "#results"},
		"level":     {revision},
		"verdict":   {revision, foreign},
		"linked":    {revision, foreign, dvZero, dvZero},
		"collapsed": {},
		"expanded":  {revision, foreign, dvZero},
		"totals":    {"3", "rfc5041", "rfc6581"},
		"norole":    {beyondR},
		"clause":    {"seen", ""},
		"nonsense":  {},
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s: %q; want %q", name, got[name], want)
		}
	}
}

// On paper what failed or is inconclusive is unfolded, and folded again after.
func TestPrintShowsWhatFailed(t *testing.T) {
	var got struct{ Before, During, After []string }
	browse(t, asHTML(t, sample(t)), "", `
out.before = opened();
dispatchEvent(new Event("beforeprint")); out.during = opened();
dispatchEvent(new Event("afterprint")); out.after = opened();
`, &got)
	if want := []string{crc, beyondR, beyondI, after, revision, foreign}; !slices.Equal(got.During, want) || len(got.Before)+len(got.After) != 0 {
		t.Errorf("open are %q, then %q, then %q", got.Before, got.During, got.After)
	}
}

// No text is too faint, by light or in the dark (4.5 : 1, as WCAG 2 has it for
// AA), each control has a name, and a narrow window needs no sideways scrolling.
func TestPageIsAccessible(t *testing.T) {
	for name, flags := range map[string][]string{
		"light":  {"--blink-settings=preferredColorScheme=1"},
		"dark":   {"--blink-settings=preferredColorScheme=0"},
		"narrow": {"--window-size=600,900"},
	} {
		t.Run(name, func(t *testing.T) {
			var got struct {
				Dark          bool
				Faint         []string
				Texts         int
				Unnamed       []string
				Width, Window int
			}
			browse(t, asHTML(t, sample(t)), "", `
for (const d of document.querySelectorAll("details")) d.open = true;
out.dark = matchMedia("(prefers-color-scheme: dark)").matches;
const rgb = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m; };
const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
out.faint = []; out.texts = 0;
for (const e of document.body.querySelectorAll("*")) {
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest("script, .vh")) continue;
  const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
  out.texts++;
  if ((a + .05) / (b + .05) < 4.5) out.faint.push(e.tagName + "." + e.className + " " + e.textContent.slice(0, 40));
}
out.unnamed = [...document.querySelectorAll("a, button, input, select, summary, [tabindex], section, ol.ladder, form")].filter((e) =>
  !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels && e.labels[0] && e.labels[0].textContent.trim()) ||
  e.tabIndex > 0 || e.getAttribute("aria-labelledby") && !document.getElementById(e.getAttribute("aria-labelledby"))).map((e) => e.outerHTML.slice(0, 80));
out.width = document.documentElement.scrollWidth; out.window = innerWidth;
`, &got, flags...)
			if got.Dark != (name == "dark") || got.Texts < 500 {
				t.Errorf("dark: %v; %d texts", got.Dark, got.Texts)
			}
			if len(got.Faint) > 0 {
				t.Errorf("%d texts are too faint: %q", len(got.Faint), got.Faint[:min(10, len(got.Faint))])
			}
			if len(got.Unnamed) > 0 {
				t.Errorf("without a name: %q", got.Unnamed)
			}
			if got.Width > got.Window {
				t.Errorf("the page is %d wide, the window %d", got.Width, got.Window)
			}
		})
	}
}

// The page's policy runs no script but the page's own, should one ever get in.
func TestPolicyOfThePageRefusesOtherScripts(t *testing.T) {
	text := strings.Replace(asHTML(t, sample(t)), "</main>", `<script>document.title = "ran"</script><img src="data:," onerror="document.title = 'ran'"></main>`, 1)
	var got struct{ Title string }
	complaints := pagetest.Look(t, text, "", `await later(); out.title = document.title;`, &got)
	if got.Title == "ran" || len(complaints) != 2 || !strings.Contains(complaints[0], "Content Security Policy") {
		t.Errorf("the title is %q, the browser says %q", got.Title, complaints)
	}
}

// A report of 800 cases opens, and its filter works.
func TestLargeReportOpens(t *testing.T) {
	var got struct{ All, Failed, Found int }
	browse(t, asHTML(t, many(t, 800)), "", `
out.all = shown().length;
for (const b of filter.elements.verdict) if (b.value !== "fail") b.click();
out.failed = shown().length;
set("q", "variant-4"); out.found = shown().length;
`, &got)
	failed, found := 0, 0
	for _, r := range many(t, 800).Results {
		if r.Verdict == conformance.Fail {
			failed++
			if strings.Contains(r.Case, "variant-4") {
				found++
			}
		}
	}
	if got.All != 800 || got.Failed != failed || got.Found != found || found == 0 {
		t.Errorf("got %+v; want 800, %d, %d", got, failed, found)
	}
}
