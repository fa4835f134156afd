package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

// The texts of the page. The figures come from the tally; prose.md.tmpl is
// written by people.
var (
	//go:embed page.md.tmpl
	pageText string
	//go:embed prose.md.tmpl
	proseText string
)

// A view is what the page's template sees.
type view struct {
	tally
	Dir            string // of the plots and results, as the page links to it
	Others         string // use of the processors by them
	Goals, Besides []verdict
	Failures       []string
	Programs       []programView
	Contests       []contestView
	Calls          []callsView
}

type programView struct{ Name, Version string }

type contestView struct{ Name, Command string }

// page writes the page of a tally whose other files are in dir.
func (t tally) page(dir string) ([]byte, error) {
	v := view{
		tally: t, Dir: dir,
		Goals: judgeAll(goals, t.Rounds), Besides: judgeAll(besides, t.Rounds),
		Failures: failures(t.Rounds), Calls: callsOf(t.Rounds),
	}
	var others []float64
	repeated := 0
	for _, r := range t.Rounds {
		for _, o := range r {
			others = append(others, o.Others)
			repeated += o.Repeated
		}
	}
	s := spreadOf(others)
	v.Others = "median " + percentText(s.Median) + ", at most " + percentText(s.Max)
	if repeated > 0 {
		v.Others += fmt.Sprintf("; %d runs were repeated for it", repeated)
	}
	for _, p := range peers {
		version := cmp.Or(t.Versions[p.name], errNotRun.Error())
		if why := t.Missing[p.name]; why != "" {
			version = "**missing**: " + cell(why)
		}
		v.Programs = append(v.Programs, programView{p.name, version})
	}
	for _, c := range contests {
		if command := t.Commands[c.name]; command != "" {
			v.Contests = append(v.Contests, contestView{c.name, command})
		}
	}
	for _, p := range t.Plots {
		if p.Error != "" {
			v.Failures = append(v.Failures, p.name()+": "+p.Error)
		}
	}
	var out bytes.Buffer
	tmpl, err := template.New("page").Funcs(template.FuncMap{"cell": cell, "shell": shell}).Parse(pageText)
	if err == nil {
		_, err = tmpl.New("prose").Parse(proseText)
	}
	if err == nil {
		err = tmpl.Execute(&out, &v)
	}
	return out.Bytes(), err
}

// Lead sums up the targets in three sentences.
func (v *view) Lead() string {
	goal := func(what string) *verdict {
		for i := range v.Goals {
			if v.Goals[i].What == what && v.Goals[i].Median != "–" {
				return &v.Goals[i]
			}
		}
		return nil
	}
	var lead []string
	if w := goal("RDMA Write 1 MiB, bandwidth, to raw TCP that batches"); w != nil {
		lead = append(lead, fmt.Sprintf("RDMA Writes of 1 MiB with CRC32c run at %s, %s times raw TCP that batches.", w.Ours, w.Median))
	}
	event, busy := goal("Send 64 B ping-pong, event mode, time to that of raw TCP"), goal("Send 64 B ping-pong, busy polling, time to that of raw TCP that spins")
	if event != nil && busy != nil {
		lead = append(lead, fmt.Sprintf("A Send of 64 bytes takes %s with completion events and %s with busy polling: %s and %s times raw TCP.",
			event.Ours, busy.Ours, event.Median, busy.Median))
	}
	met := 0
	for i := range v.Goals {
		if v.Goals[i].Held == "met" {
			met++
		}
	}
	last := fmt.Sprintf("urnic meets %d of %d targets", met, len(v.Goals))
	if met < len(v.Goals) {
		last += "; [the reasons for the others](#targets-not-met) are below"
	}
	return strings.Join(append(lead, last+"."), " ")
}

// First returns the plot that the page begins with.
func (v *view) First() []plot {
	for _, p := range v.Plots {
		if p.Error == "" {
			return []plot{p}
		}
	}
	return nil
}

// cell makes a text fit a cell of a table or a line of a list.
func cell(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "|", `\|`)), " ")
}

// shell puts the prompt before each line.
func shell(s string) string { return "$ " + strings.ReplaceAll(s, "\n", "\n$ ") }
