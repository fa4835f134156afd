package page

import (
	"crypto/sha256"
	_ "embed" // the parts of all pages
	"encoding/base64"
	"html/template"
	"io"
)

var (
	//go:embed document.html
	documentHTML string
	//go:embed base.css
	baseCSS string
	//go:embed base.js
	baseJS string

	documentTemplate = template.Must(template.New("document").Parse(documentHTML))
)

// A Document is a page. Its strings are text, escaped where they stand in the page; Style and
// Script are the program's own, never a peer's.
type Document struct {
	Title string
	Tool  string // the program that made the page, with its version
	Style string // rules of CSS beside those of all pages
	// Script runs when the page is there, as the body of an async function: it may use part(NAME).
	Script string
	Body   template.HTML // made by a template of html/template
	Parts  *Parts        // may be nil
}

// Write writes the page. Its error is that of w.
func (d *Document) Write(w io.Writer) error {
	style, script := baseCSS+d.Style, baseJS+"\nready = (async () => {\n"+d.Script+"\n})();\n"
	var parts []part
	if d.Parts != nil {
		d.Parts.flush()
		parts = d.Parts.done
	}
	return documentTemplate.Execute(w, struct {
		*Document
		Style, Script         any
		StyleHash, ScriptHash string
		Parts                 []part
	}{d, template.CSS(style), template.JS(script), Hash(style), Hash(script), parts})
}

// Hash names a style or script as a Content-Security-Policy does.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
