package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"urnic/internal/host/printable"
)

// showsColors reports whether text for w may have colors: w is a terminal that shows them,
// and NO_COLOR (https://no-color.org) isn't set.
func showsColors(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// jsonLine returns v, a struct, as a JSON object in one line that a terminal can show. Its
// first field is "format": the name and version of the format, which docs/json.md lists.
func jsonLine(format string, v any) (string, error) {
	object, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf(`{"format":%q`, format)
	if fields := object[1:]; fields[0] != '}' {
		line += ","
	}
	return line + string(printable.JSON(object[1:])), nil
}

// writeJSON writes v as a JSON object that a terminal can show, in one line.
func writeJSON(w io.Writer, format string, v any) error {
	line, err := jsonLine(format, v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, line+"\n")
	return err
}
