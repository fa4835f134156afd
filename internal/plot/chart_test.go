package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// The ends of an axis are round numbers around the values.
func TestAxesFitTheirValues(t *testing.T) {
	for _, tc := range []struct {
		log                 bool
		low, high, from, to float64
	}{
		{false, 1, 7222, 0, 8000},
		{false, 0, 1, 0, 1},
		{false, 3, 3.4e6, 0, 3.5e6},
		{true, 5.4, 71, 5, 100},
		{true, 10, 100, 10, 100},
		{true, 0.3, 200, 0.2, 200},
		{true, 3, 3, 2, 5},
		{true, 2, 5e6, 1, 1e7},
	} {
		a := Axis{Log: tc.log}
		a.fit(tc.low, tc.high)
		if math.Abs(a.from-tc.from) > 1e-9 || math.Abs(a.to-tc.to)/tc.to > 1e-9 || len(a.Ticks) < 2 || len(a.Ticks) > 14 {
			t.Errorf("%+v: from %v to %v, %d ticks", tc, a.from, a.to, len(a.Ticks))
		}
	}
}

// A horizontal axis is as long as the values, with round numbers on it.
func TestSpans(t *testing.T) {
	for _, tc := range []struct {
		low, high, from, to float64
		ticks               string
	}{
		{0, 60, 0, 60, "0 10 20 30 40 50 60"},
		{3, 47, 3, 47, "5 10 15 20 25 30 35 40 45"},
		{0.2, 0.8, 0.2, 0.8, "0.2 0.3 0.4 0.5 0.6 0.7 0.8"},
		{5, 5, 2.5, 10, "3 4 5 6 7 8 9 10"},
		{0, 0, 0, 1, "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"},
		{math.Inf(1), math.Inf(-1), 1, 10, "1 2 3 4 5 6 7 8 9 10"},
	} {
		var a Axis
		a.span(tc.low, tc.high)
		var labels []string
		for _, t := range a.Ticks {
			labels = append(labels, t.Label)
		}
		if a.from != tc.from || a.to != tc.to || strings.Join(labels, " ") != tc.ticks {
			t.Errorf("%v to %v: from %v to %v, %v", tc.low, tc.high, a.from, a.to, labels)
		}
	}
	a := Axis{Log: true}
	if a.span(1, 8); a.Ticks != nil {
		t.Errorf("a logarithmic axis has %v", a.Ticks)
	}
}

// What is drawn is XML, whatever the names and values are, and is the same each time.
func TestPictures(t *testing.T) {
	draw := func(series ...Series) string {
		var b bytes.Buffer
		c := Chart{Title: "<a> & b", X: Axis{Label: "s"}, Y: Axis{Label: "segments"}, Series: series}
		if err := c.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	line := Series{Name: `"q"`, Colour: "#000", Points: [][2]float64{{0, 1}, {1, 3}, {2, 0}}}
	dashed := Series{Name: "d", Colour: "#111", Dash: Dashes, Points: [][2]float64{{0, 2}, {2, 2}}}
	for _, series := range [][]Series{nil, {line}, {line, dashed}, {{Name: "none"}}, {{Points: [][2]float64{{0, 0}}}}} {
		text := draw(series...)
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
		for _, bad := range []string{"NaN", "Inf"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s in\n%s", bad, text)
			}
		}
		if strings.Count(text, "<polyline") != len(series) || draw(series...) != text {
			t.Errorf("%d lines:\n%s", len(series), text)
		}
	}
	if text := draw(line, dashed); strings.Count(text, "<circle") != 3 || strings.Count(text, `stroke-dasharray="5 4"`) != 2 {
		t.Errorf("dots or dashes are missing:\n%s", text)
	}
}
