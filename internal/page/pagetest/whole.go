package pagetest

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
)

var parts = regexp.MustCompile(`<template id="part-([^"]*)">([^<]*)</template>\n`)

// Parts returns the parts of a page by name, decompressed: JSON.
func Parts(t *testing.T, text string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, m := range parts.FindAllStringSubmatch(text, -1) {
		compressed, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			t.Fatalf("part %s: %v", m[1], err)
		}
		b, err := io.ReadAll(flate.NewReader(bytes.NewReader(compressed)))
		if err != nil {
			t.Fatalf("part %s: %v", m[1], err)
		}
		out[m[1]] = b
	}
	return out
}

// Whole returns a page in which the texts of all parts that are a string or an array of strings stand in the
// place of the parts.
func Whole(t *testing.T, text string) string {
	t.Helper()
	all := Parts(t, text)
	return parts.ReplaceAllStringFunc(text, func(s string) string {
		b := all[parts.FindStringSubmatch(s)[1]]
		var one string
		var many []string
		if json.Unmarshal(b, &one) == nil {
			return one
		}
		if err := json.Unmarshal(b, &many); err != nil {
			t.Fatal(err)
		}
		return strings.Join(many, "\n")
	})
}
