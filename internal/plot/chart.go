package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// A Chart is lines over two axes.
type Chart struct {
	Title, Subtitle string
	X, Y            Axis
	Series          []Series
}

// An Axis is linear or logarithmic. A linear Y axis begins at zero; an X axis, and a logarithmic Y axis, where the
// values do. An X axis without Ticks gets round numbers.
type Axis struct {
	Label string
	Log   bool
	Ticks []Tick

	from, to float64
}

// A Tick is a mark on an axis. Without a label it is only a line.
type Tick struct {
	At    float64
	Label string
}

// A Series is a line through points, each with its x and y.
type Series struct {
	Name   string
	Colour string // as CSS has it
	Dash   string // a dash pattern, as [Dashes]; empty: a solid line, with a dot at each point if they are few
	Points [][2]float64
}

// Dashes is a dash pattern.
const Dashes = "5 4"

// The picture in pixels, and the panel with the lines in it.
const (
	width, height = 860, 500
	left, right   = 84, 836
	top, bottom   = 92, 440
)

// extent returns the least and the greatest x and y of all points.
func (c *Chart) extent() (x, y [2]float64) {
	x, y = [2]float64{math.Inf(1), math.Inf(-1)}, [2]float64{math.Inf(1), math.Inf(-1)}
	for _, s := range c.Series {
		for _, p := range s.Points {
			x = [2]float64{min(x[0], p[0]), max(x[1], p[0])}
			y = [2]float64{min(y[0], p[1]), max(y[1], p[1])}
		}
	}
	return x, y
}

// WriteSVG writes the picture.
func (c *Chart) WriteSVG(w io.Writer) error {
	x, y := c.extent()
	c.X.span(x[0], x[1])
	c.Y.fit(y[0], y[1])
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="13" fill="#333">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(c.Title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="32" font-size="18" font-weight="bold">%s</text>`+"\n", left, escape(c.Title))
	fmt.Fprintf(&b, `<text x="%d" y="53" font-size="12" fill="#666">%s</text>`+"\n", left, escape(c.Subtitle))
	c.axes(&b)
	for _, s := range c.Series {
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

func (c *Chart) axes(b *strings.Builder) {
	for _, t := range c.Y.Ticks {
		y := c.py(t.At)
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e3e3e3"/>`+"\n", left, y, right, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4.5, escape(t.Label))
	}
	for _, t := range c.X.Ticks {
		x := c.px(t.At)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888"/>`+"\n", x, bottom, x, bottom+5)
		if t.Label != "" {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, bottom+21, escape(t.Label))
		}
	}
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%[2]d" stroke="#888"/>`+"\n", left, bottom, right)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+right)/2, bottom+44, escape(c.X.Label))
	fmt.Fprintf(b, `<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+bottom)/2, escape(c.Y.Label))
}

func (c *Chart) line(b *strings.Builder, s Series) {
	var points []string
	for _, p := range s.Points {
		points = append(points, fmt.Sprintf("%.1f,%.1f", c.px(p[0]), c.py(p[1])))
	}
	dash := ""
	if s.Dash != "" {
		dash = fmt.Sprintf(` stroke-dasharray="%s"`, s.Dash)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"%s/>`+"\n", strings.Join(points, " "), s.Colour, dash)
	if len(s.Points) > 40 || s.Dash != "" {
		return
	}
	for _, p := range s.Points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", c.px(p[0]), c.py(p[1]), s.Colour)
	}
}

// legend names the lines in a row above the panel.
func (c *Chart) legend(b *strings.Builder) {
	x := left
	for _, s := range c.Series {
		dash := ""
		if s.Dash != "" {
			dash = fmt.Sprintf(` stroke-dasharray="%s"`, s.Dash)
		}
		fmt.Fprintf(b, `<line x1="%d" y1="74" x2="%d" y2="74" stroke="%s" stroke-width="2.5"%s/>`+"\n", x, x+26, s.Colour, dash)
		fmt.Fprintf(b, `<text x="%d" y="78.5">%s</text>`+"\n", x+33, escape(s.Name))
		x += 33 + 8*len(s.Name) + 22
	}
}

func (c *Chart) px(v float64) float64 { return left + c.X.share(v)*(right-left) }
func (c *Chart) py(v float64) float64 { return bottom - c.Y.share(v)*(bottom-top) }

// share returns where a value lies between the ends of the axis: 0 to 1.
func (a *Axis) share(v float64) float64 {
	if a.Log {
		return math.Log(v/a.from) / math.Log(a.to/a.from)
	}
	return (v - a.from) / (a.to - a.from)
}

// span has an axis begin and end with values.
func (a *Axis) span(low, high float64) {
	a.from, a.to = low, high
	switch {
	case low > high: // there are no points
		a.from, a.to = 1, 10
	case low == high && low != 0: // one point stands in the middle
		a.from, a.to = low/2, high*2
	case low == high:
		a.to = 1
	}
	if a.Ticks != nil || a.Log {
		return
	}
	step := step(a.to - a.from)
	for i := math.Ceil(a.from/step - 1e-9); i*step <= a.to+1e-9*step; i++ {
		a.Ticks = append(a.Ticks, Tick{i * step, number(i * step)})
	}
}

// step returns a round number, of which some six make up a range.
func step(size float64) float64 {
	const about = 6
	step := math.Pow(10, math.Floor(math.Log10(size/about)))
	for _, m := range []float64{10, 5, 2} {
		if size/(step*m) >= about {
			return step * m
		}
	}
	return step
}

// fit chooses the ends and the ticks of an axis for values.
func (a *Axis) fit(low, high float64) {
	if high <= 0 { // nothing went
		high = 1
	}
	if a.Log {
		a.fitLog(low, high)
		return
	}
	step := step(high)
	for i := 0; ; i++ {
		v := float64(i) * step
		a.Ticks = append(a.Ticks, Tick{v, number(v)})
		if v >= high*(1-1e-9) {
			a.to = v
			return
		}
	}
}

// fitLog has ticks at 1, 2 and 5 of each power of ten, or only at 1 if those are
// many.
func (a *Axis) fitLog(low, high float64) {
	if low <= 0 || low > high {
		low = high / 10
	}
	factors := []float64{1, 2, 5}
	if high/low > 1e4 {
		factors = factors[:1]
	}
	var ticks []Tick
	for e := math.Floor(math.Log10(low)); ; e++ {
		for _, f := range factors {
			v := f * math.Pow(10, e)
			if v <= low*(1+1e-9) { // the last one below is the end of the axis
				ticks = ticks[:0]
			}
			ticks = append(ticks, Tick{v, number(v)})
			if v >= high*(1-1e-9) && len(ticks) > 1 {
				a.from, a.to, a.Ticks = ticks[0].At, v, ticks
				return
			}
		}
	}
}

// number writes a number with spaces between thousands.
func number(v float64) string {
	if v == 0 {
		return "0" // also where it is -0
	}
	if v < 1000 {
		return fmt.Sprintf("%.4g", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}
