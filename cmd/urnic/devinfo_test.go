package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"urnic/pd"
	"urnic/rnic"
)

// attr returns what devinfo is to show.
func attr(t *testing.T) rnic.Attr {
	t.Helper()
	d, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return d.Attr()
}

func TestDevinfoShowsEachAttribute(t *testing.T) {
	a := attr(t)
	// The spaces that align the columns tell nothing.
	out := regexp.MustCompile(` {2,}`).ReplaceAllString(ok(t, "devinfo"), "|")
	want := []string{
		"transport|iWARP (RDMAP/DDP/MPA/TCP)", "MPA revisions|1, 2",
		"atomics (FetchAdd, CmpSwap)|yes", "immediate data|yes", "memory windows (types 1, 2)|yes",
		"fast registration|yes", "zero-based regions|yes", "shared receive queues|yes",
		fmt.Sprintf("max_sge|%d", a.MaxSGE), fmt.Sprintf("max_sge_rd|%d", a.MaxReadSGE),
		fmt.Sprintf("max_inline|%d", a.MaxInline), fmt.Sprintf("max_qp_wr|%d", a.MaxWR), fmt.Sprintf("max_cqe|%d", a.MaxCQE),
		fmt.Sprintf("max_qp_rd_atom (IRD)|%d", a.MaxIRD), fmt.Sprintf("max_qp_init_rd_atom (ORD)|%d", a.MaxORD),
		fmt.Sprintf("max_msg_sz|%d", a.MaxMessage), fmt.Sprintf("private data bytes|%d", a.PrivateData),
	}
	for r := range pd.Resource(pd.NumResources) {
		want = append(want, fmt.Sprintf("%v|%d|%d", r, a.Limits[r], a.DomainLimits[r]))
	}
	for _, w := range want {
		if !strings.Contains(out, "|"+w+"\n") {
			t.Errorf("no %q in\n%s", w, out)
		}
	}
	if !strings.HasPrefix(out, a.Name+"\n") {
		t.Errorf("it does not begin with the name %s:\n%s", a.Name, out)
	}
}

func TestDevinfoSaysNoToWhatIsMissing(t *testing.T) {
	a := attr(t)
	a.Atomics = false
	var out strings.Builder
	if err := writeDevinfo(&out, a); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`atomics \(FetchAdd, CmpSwap\) +no\n`).MatchString(out.String()) {
		t.Error(out.String())
	}
}

func TestDevinfoJSONHasEachAttribute(t *testing.T) {
	out := ok(t, "devinfo", "--json")
	var got struct {
		Format string
		rnic.Attr
		Limits map[string]struct{ Device, Domain uint64 }
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil || d.More() {
		t.Fatalf("not one object: %v\n%s", err, out)
	}
	a := attr(t)
	if len(got.Limits) != pd.NumResources {
		t.Errorf("limits of %d resources; want %d", len(got.Limits), pd.NumResources)
	}
	for r := range pd.Resource(pd.NumResources) {
		if l, there := got.Limits[r.String()]; !there || l.Device != a.Limits[r] || l.Domain != a.DomainLimits[r] || l.Device == 0 {
			t.Errorf("%v: %+v; want %d and %d", r, l, a.Limits[r], a.DomainLimits[r])
		}
	}
	a.Limits, a.DomainLimits = pd.Limits{}, pd.Limits{}
	if got.Attr != a {
		t.Errorf("%+v\nwant %+v", got.Attr, a)
	}
}

func TestDevinfoErrors(t *testing.T) {
	args := []string{"devinfo", "urnic0"}
	status, _, errOut := urnic(t, nil, args...)
	wantError(t, args, status, errOut, "`urnic devinfo` takes no arguments")
}
