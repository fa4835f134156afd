package perf

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// A chart is lines over two axes.
type chart struct {
	title, subtitle string
	x, y            axis
	place           func(*Result) float64 // x of a result
	series          []series

	nearest, furthest float64 // x
	lowest, highest   float64 // y
}

// An axis is linear from zero, or logarithmic.
type axis struct {
	label    string
	log      bool
	from, to float64
	ticks    []tick
}

type tick struct {
	at    float64
	label string
}

type series struct {
	name, colour, dash string
	points             [][2]float64
}

// The picture in pixels, and the panel with the lines in it.
const (
	width, height = 860, 500
	left, right   = 84, 836
	top, bottom   = 92, 440
	dashes        = "5 4"
)

// add adds a line through a value of each result.
func (c *chart) add(name, colour, dash string, results []Result, value func(*Result) float64) {
	s := series{name: name, colour: colour, dash: dash}
	for i := range results {
		s.points = append(s.points, [2]float64{c.place(&results[i]), value(&results[i])})
	}
	c.addSeries(s)
}

func (c *chart) addSeries(s series) {
	for _, p := range s.points {
		if c.nearest == 0 || p[0] < c.nearest {
			c.nearest = p[0]
		}
		c.furthest = max(c.furthest, p[0])
		c.lowest, c.highest = min(c.lowest, p[1]), max(c.highest, p[1])
	}
	c.series = append(c.series, s)
}

// write writes the picture.
func (c *chart) write(w io.Writer) error {
	c.x.from, c.x.to = c.nearest, c.furthest
	switch c.x.from {
	case 0: // there are no points
		c.x.from, c.x.to = 1, 10
	case c.x.to: // one point stands in the middle
		c.x.from, c.x.to = c.x.from/2, c.x.to*2
	}
	c.y.fit(c.lowest, c.highest)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="13" fill="#333">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(c.title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="32" font-size="18" font-weight="bold">%s</text>`+"\n", left, escape(c.title))
	fmt.Fprintf(&b, `<text x="%d" y="53" font-size="12" fill="#666">%s</text>`+"\n", left, escape(c.subtitle))
	c.axes(&b)
	for _, s := range c.series {
		c.line(&b, s)
	}
	c.legend(&b)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

func (c *chart) axes(b *strings.Builder) {
	for _, t := range c.y.ticks {
		y := c.py(t.at)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e3e3e3"/>`+"\n", left, y, right, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4.5, escape(t.label))
	}
	for _, t := range c.x.ticks {
		x := c.px(t.at)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888"/>`+"\n", x, bottom, x, bottom+5)
		if t.label != "" {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, bottom+21, escape(t.label))
		}
	}
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%[2]d" stroke="#888"/>`+"\n", left, bottom, right)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+right)/2, bottom+44, escape(c.x.label))
	fmt.Fprintf(b, `<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+bottom)/2, escape(c.y.label))
}

func (c *chart) line(b *strings.Builder, s series) {
	var points []string
	for _, p := range s.points {
		points = append(points, fmt.Sprintf("%.1f,%.1f", c.px(p[0]), c.py(p[1])))
	}
	dash := ""
	if s.dash != "" {
		dash = fmt.Sprintf(` stroke-dasharray="%s"`, s.dash)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"%s/>`+"\n", strings.Join(points, " "), s.colour, dash)
	if len(s.points) > 40 || s.dash != "" {
		return
	}
	for _, p := range s.points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", c.px(p[0]), c.py(p[1]), s.colour)
	}
}

// legend names the lines in a row above the panel.
func (c *chart) legend(b *strings.Builder) {
	x := left
	for _, s := range c.series {
		dash := ""
		if s.dash != "" {
			dash = fmt.Sprintf(` stroke-dasharray="%s"`, s.dash)
		}
		fmt.Fprintf(b, `<line x1="%d" y1="74" x2="%d" y2="74" stroke="%s" stroke-width="2.5"%s/>`+"\n", x, x+26, s.colour, dash)
		fmt.Fprintf(b, `<text x="%d" y="78.5">%s</text>`+"\n", x+33, escape(s.name))
		x += 33 + 8*len(s.name) + 22
	}
}

func (c *chart) px(v float64) float64 { return left + c.x.share(v)*(right-left) }
func (c *chart) py(v float64) float64 { return bottom - c.y.share(v)*(bottom-top) }

// share returns where a value lies between the ends of the axis: 0 to 1.
func (a *axis) share(v float64) float64 {
	if a.log {
		return math.Log(v/a.from) / math.Log(a.to/a.from)
	}
	return (v - a.from) / (a.to - a.from)
}

// fit chooses the ends and the ticks of an axis for values.
func (a *axis) fit(low, high float64) {
	if high <= 0 { // nothing went
		high = 1
	}
	if a.log {
		a.fitLog(low, high)
		return
	}
	const about = 6
	step := math.Pow(10, math.Floor(math.Log10(high/about)))
	for _, m := range []float64{10, 5, 2} {
		if high/(step*m) >= about {
			step *= m
			break
		}
	}
	for i := 0; ; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, tick{v, number(v)})
		if v >= high*(1-1e-9) {
			a.to = v
			return
		}
	}
}

// fitLog has ticks at 1, 2 and 5 of each power of ten, or only at 1 if those are
// many.
func (a *axis) fitLog(low, high float64) {
	if low <= 0 || low > high {
		low = high / 10
	}
	factors := []float64{1, 2, 5}
	if high/low > 1e4 {
		factors = factors[:1]
	}
	var ticks []tick
	for e := math.Floor(math.Log10(low)); ; e++ {
		for _, f := range factors {
			v := f * math.Pow(10, e)
			if v <= low*(1+1e-9) { // the last one below is the end of the axis
				ticks = ticks[:0]
			}
			ticks = append(ticks, tick{v, number(v)})
			if v >= high*(1-1e-9) && len(ticks) > 1 {
				a.from, a.to, a.ticks = ticks[0].at, v, ticks
				return
			}
		}
	}
}

// number writes a number with spaces between thousands.
func number(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.4g", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}
