package main

import (
	"encoding/json"
	"io"
	"os"

	"urnic/internal/printable"
)

// showsColors reports whether text for w may have colors: w is a terminal that shows them,
// and NO_COLOR (https://no-color.org) isn't set.
func showsColors(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// jsonLine returns v as JSON in one line that a terminal can show.
func jsonLine(v any) (string, error) {
	line, err := json.Marshal(v)
	return string(printable.JSON(line)), err
}

// writeJSON writes v as JSON that a terminal can show, in one line.
func writeJSON(w io.Writer, v any) error {
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, line+"\n")
	return err
}
