package report

import (
	"encoding/json"
	"fmt"
	"io"

	"urnic/conformance"
)

// A FormatError says that something is no report that [JSON] wrote.
type FormatError struct{ Format string }

// Error says what was expected.
func (e *FormatError) Error() string {
	if e.Format == "" {
		return "it is no report of urnic conform --json"
	}
	return fmt.Sprintf("its format is %q, and this program reads %q: use the urnic that wrote it", e.Format, Format)
}

// Decode reads a report that [JSON] wrote, without its exchanges.
func Decode(r io.Reader) (*conformance.Report, error) {
	var document struct {
		Format string `json:"format"`
		conformance.Report
		Results []struct {
			conformance.Result
			Exchange struct{} `json:"-"`
		} `json:"results"`
	}
	if err := json.NewDecoder(r).Decode(&document); err != nil {
		return nil, fmt.Errorf("%w: %w", &FormatError{}, err)
	}
	if document.Format != Format {
		return nil, &FormatError{document.Format}
	}
	out := document.Report
	for i := range document.Results {
		c := document.Results[i].Result
		c.Exchange = nil
		out.Results = append(out.Results, c)
	}
	return &out, nil
}
