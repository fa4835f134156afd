package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"urnic/conformance"
	"urnic/internal/page/pagetest"
)

// two are the sample, and the same endpoint once it has been repaired, without one case.
func two(t *testing.T) []Endpoint {
	t.Helper()
	before, after := sample(t), sample(t)
	for i := range after.Results {
		if c := &after.Results[i]; c.Verdict == conformance.Fail {
			c.Verdict, c.Reason = conformance.Pass, ""
		}
	}
	after.Results = slices.DeleteFunc(after.Results, func(r conformance.Result) bool { return place(&r) == keyI })
	return []Endpoint{{"before", before}, {"after", assemble(after.Results)}}
}

func TestDecodeReadsWhatJSONWrites(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, sample(t)); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	want := sample(t)
	if len(got.Results) != len(want.Results) || got.Totals != want.Totals || got.Outcome() != want.Outcome() {
		t.Errorf("%d results, %+v", len(got.Results), got.Totals)
	}
	for i := range got.Results {
		if got.Results[i].Case != want.Results[i].Case || got.Results[i].Verdict != want.Results[i].Verdict || got.Results[i].Exchange != nil {
			t.Errorf("result %d is %+v", i, got.Results[i])
		}
	}
	for _, bad := range []string{"", "{}", `{"format":"urnic-conform/9"}`, `<html>`} {
		_, err := Decode(strings.NewReader(bad))
		if e := (*FormatError)(nil); !errors.As(err, &e) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The text has a line for each case that differs, and fits 80 columns.
func TestCompareShowsWhatDiffers(t *testing.T) {
	var b bytes.Buffer
	if err := Compare(&b, two(t)); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{
		"the verdicts differ in 5 of 13 cases\n",
		"A       4      4      2      3  before: ",
		"FAIL  pass  rfc5041-7.1-4/end-one-octet-beyond (responder)\n",
		"pass  –     rfc5044-7.1.1-1/request-key (initiator)\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "dv-zero") {
		t.Error("a case that does not differ is listed")
	}
	for l := range strings.Lines(out) {
		if columns(strings.TrimSuffix(l, "\n")) > 80 {
			t.Errorf("wider than 80 columns: %q", l)
		}
	}
}

// The page shows what differs at first, and the rest on demand.
func TestComparisonOpensInABrowser(t *testing.T) {
	var b bytes.Buffer
	if err := CompareHTML(&b, "urnic", two(t)); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{"desktop": nil, "phone, dark": {"--window-size=390,800", "--force-dark-mode", "--blink-settings=preferredColorScheme=0"}} {
		var got struct {
			First, All int
			Outcome    string
			Fits       bool
		}
		pagetest.Browse(t, b.String(), "", `
const rows = () => [...document.querySelectorAll(".matrix tbody tr")].filter(seen).length;
out.first = rows(); out.outcome = document.querySelector(".outcome").textContent;
document.getElementById("same").click(); await until(() => rows() > out.first); out.all = rows();
out.fits = document.documentElement.scrollWidth <= innerWidth;
`, &got, flags...)
		if got.First != 5 || got.All != 13 || !strings.Contains(got.Outcome, "differ in 5 of 13 cases") || !got.Fits {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
