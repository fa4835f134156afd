package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"urnic/conformance"
)

// Each form of a report says over which lower layer the run was.
func TestReportsNameTheLowerLayer(t *testing.T) {
	forms := map[string]func(io.Writer, *conformance.Report) error{
		"text":  func(w io.Writer, r *conformance.Report) error { return Text(w, r, TextOptions{}) },
		"JSON":  JSON,
		"JUnit": JUnit,
		"page":  HTML,
	}
	for llp, want := range map[conformance.LLP]map[string]string{
		conformance.TCP: {"text": "profile urnic over TCP", "JSON": `"llp": "tcp"`, "JUnit": `name="llp" value="tcp"`, "page": "<dd>MPA over TCP</dd>"},
		conformance.RDP: {"text": "profile urnic over RDP", "JSON": `"llp": "rdp"`, "JUnit": `name="llp" value="rdp"`, "page": "<dd>DDP over RDP</dd>"},
	} {
		r := sample(t)
		r.LLP = llp
		for form, write := range forms {
			var b bytes.Buffer
			if err := write(&b, r); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), want[form]) {
				t.Errorf("%s of a run over %s lacks %q", form, llp, want[form])
			}
		}
	}
}
