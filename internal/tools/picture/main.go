// Command picture draws boxes and arrows as SVG from a text:
//
//	picture SOURCE.txt PICTURE.svg
//
// A line of the source is a row of boxes, or an arrow between two of them:
//
//	rnic: queue pair (qp.go) | completion queue (cq.go)
//	queue pair -> completion queue: completes
//
// What stands before the first colon of a row is the name of the row; what stands in
// parentheses is a second line of the box. Empty lines and lines that begin with # are
// passed over.
package main

import (
	"bytes"
	"fmt"
	"html"
	"log"
	"os"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("picture: ")
	if len(os.Args) != 3 {
		log.Fatal("say picture SOURCE.txt PICTURE.svg")
	}
	source, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	svg, err := draw(string(source))
	if err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	if err := os.WriteFile(os.Args[2], svg, 0o644); err != nil {
		log.Fatal(err)
	}
}

// The sizes of what is drawn, in pixels.
const (
	width     = 960
	margin    = 110 // for the names of rows
	gap       = 22  // between boxes
	boxHeight = 46
	rowHeight = 92
)

// A box is a box of a row.
type box struct {
	title, detail string
	x, y, w       int
}

// An arrow leads from one box to another.
type arrow struct{ from, to, label string }

// A picture is what a source says.
type picture struct {
	rows   []string
	boxes  []*box
	byName map[string]*box
	arrows []arrow
}

func parse(source string) (*picture, error) {
	p := &picture{byName: make(map[string]*box)}
	for i, line := range strings.Split(source, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if from, rest, ok := strings.Cut(line, "->"); ok {
			to, label, _ := strings.Cut(rest, ":")
			p.arrows = append(p.arrows, arrow{strings.TrimSpace(from), strings.TrimSpace(to), strings.TrimSpace(label)})
			continue
		}
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d is neither a row nor an arrow: %q", i+1, line)
		}
		p.addRow(name, strings.Split(rest, "|"))
	}
	for _, a := range p.arrows {
		for _, name := range []string{a.from, a.to} {
			if p.byName[name] == nil {
				return nil, fmt.Errorf("an arrow names the box %q, which is in no row", name)
			}
		}
	}
	return p, nil
}

func (p *picture) addRow(name string, cells []string) {
	w := (width - margin - gap*len(cells)) / len(cells)
	for i, c := range cells {
		title, detail, _ := strings.Cut(c, "(")
		b := &box{
			title: strings.TrimSpace(title), detail: strings.TrimSuffix(strings.TrimSpace(detail), ")"),
			x: margin + i*(w+gap), y: 14 + len(p.rows)*rowHeight, w: w,
		}
		p.boxes = append(p.boxes, b)
		p.byName[b.title] = b
	}
	p.rows = append(p.rows, strings.TrimSpace(name))
}

// draw returns the picture of a source.
func draw(source string) ([]byte, error) {
	p, err := parse(source)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	text := func(x, y int, class, s string) {
		fmt.Fprintf(&out, "<text x=\"%d\" y=\"%d\" class=%q>%s</text>\n", x, y, class, html.EscapeString(s))
	}
	height := len(p.rows) * rowHeight
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n", width, height)
	out.WriteString(style)
	for i, name := range p.rows {
		text(8, 14+i*rowHeight+boxHeight/2+5, "row", name)
	}
	for _, a := range p.arrows {
		x1, y1, x2, y2 := p.byName[a.from].ends(p.byName[a.to])
		fmt.Fprintf(&out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" marker-end=\"url(#head)\"/>\n", x1, y1, x2, y2)
		text((x1+x2)/2+6, (y1+y2)/2+4, "label", a.label)
	}
	for _, b := range p.boxes {
		fmt.Fprintf(&out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>\n", b.x, b.y, b.w, boxHeight)
		if b.detail == "" {
			text(b.x+b.w/2, b.y+28, "title", b.title)
			continue
		}
		text(b.x+b.w/2, b.y+19, "title", b.title)
		text(b.x+b.w/2, b.y+36, "detail", b.detail)
	}
	out.WriteString("</svg>\n")
	return out.Bytes(), nil
}

const style = `<style>
rect { fill: #eef3f8; stroke: #345; }
line { stroke: #345; }
text { fill: #123; }
.title { font-size: 14px; text-anchor: middle; font-weight: bold; }
.detail { font-size: 11px; text-anchor: middle; }
.row { font-size: 13px; font-style: italic; }
.label { font-size: 11px; }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#345"/></marker></defs>
`

// ends returns where an arrow from b to o begins and ends: between their rows, or from
// side to side within a row.
func (b *box) ends(o *box) (x1, y1, x2, y2 int) {
	switch {
	case b.y < o.y:
		return b.x + b.w/2, b.y + boxHeight, o.x + o.w/2, o.y
	case b.y > o.y:
		return b.x + b.w/2, b.y, o.x + o.w/2, o.y + boxHeight
	case b.x < o.x:
		return b.x + b.w, b.y + boxHeight/2, o.x, o.y + boxHeight/2
	}
	return b.x, b.y + boxHeight/2, o.x + o.w, o.y + boxHeight/2
}
