package report

import (
	"encoding/json"
	"io"

	"urnic/conformance"
)

// Format names the form of a JSON report. It changes if a field goes or changes
// its meaning, and stays if one is added.
const Format = "urnic-conform/1"

// JSON writes a report as an indented JSON object, as docs/conform.schema.json
// describes it. The same report gives the same octets. Its error is that of w.
func JSON(w io.Writer, r *conformance.Report) error {
	document := struct {
		Format   string              `json:"format"`
		Outcome  conformance.Outcome `json:"outcome"`
		Headline string              `json:"headline"`
		conformance.Report
	}{Format, r.Outcome(), r.Headline(), *r}
	// An empty list is a list.
	if document.Coverage == nil {
		document.Coverage = []conformance.Coverage{}
	}
	document.Results = append([]conformance.Result{}, document.Results...)
	for i := range document.Results {
		if document.Results[i].Clauses == nil {
			document.Results[i].Clauses = []string{}
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(document)
}
