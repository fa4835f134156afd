package report

import (
	"bytes"
	"encoding/json"
	"io"

	"urnic/conformance"
	"urnic/internal/host/printable"
)

// Format names the form of a JSON report. It changes if a field goes or changes
// its meaning, and stays if one is added.
const Format = "urnic-conform/1"

// JSON writes a report as an indented JSON object, as docs/conform.schema.json describes
// it, that a terminal can show. The same report gives the same bytes. Its error is that of
// w.
func JSON(w io.Writer, r *conformance.Report) error {
	document := struct {
		Format   string              `json:"format"`
		Outcome  conformance.Outcome `json:"outcome"`
		Headline string              `json:"headline"`
		conformance.Report
	}{Format, r.Outcome(), r.Headline(), *r}
	document.LLP = conformance.LLP(r.LLP.Name())
	// An empty list is a list.
	if document.Coverage == nil {
		document.Coverage = []conformance.Coverage{}
	}
	if document.Clauses == nil {
		document.Clauses = []conformance.ClauseState{}
	}
	document.Results = append([]conformance.Result{}, document.Results...)
	for i := range document.Results {
		if document.Results[i].Clauses == nil {
			document.Results[i].Clauses = []string{}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		return err
	}
	_, err := w.Write(printable.JSON(b.Bytes()))
	return err
}
