package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A plot is a picture that urnic perf draws.
type plot struct {
	File    string `json:"file"` // beside the page's other files
	Title   string `json:"title"`
	Command string `json:"command"`
	Error   string `json:"error,omitempty"`
	NotRun  bool   `json:"not_run,omitempty"`

	flags string
}

// name is what --only calls it.
func (p plot) name() string { return "plot " + p.File }

// plots are the pictures of the page: raw TCP is in each.
var plots = []plot{
	{File: "write.svg", Title: "RDMA Write: bandwidth against size, CRC on", flags: "--op write --test bw --depth 16 --crc on --size " + sizes(64, 4<<20)},
	{File: "write-nocrc.svg", Title: "RDMA Write: bandwidth against size, CRC off", flags: "--op write --test bw --depth 16 --crc off --size " + sizes(64, 4<<20)},
	{File: "read.svg", Title: "RDMA Read: bandwidth against size, CRC on", flags: "--op read --test bw --depth 16 --crc on --size " + sizes(64, 4<<20)},
	{File: "send-event.svg", Title: "Send ping-pong: time against size, event mode", flags: "--op send --test lat --poll event --crc on --size " + sizes(8, 64<<10)},
	{File: "send-busy.svg", Title: "Send ping-pong: time against size, busy polling", flags: "--op send --test lat --poll busy --crc on --size " + sizes(8, 64<<10)},
}

// sizes lists every second power of two.
func sizes(from, to int) string {
	var out []string
	for n := from; n <= to; n *= 4 {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ",")
}

// plotTime is how long each size of a plot is measured, when a contest has d.
func plotTime(d time.Duration) time.Duration { return max(d/4, 50*time.Millisecond) }

// draw has urnic draw the plots that are wanted into a directory.
func (r *racer) draw(ctx context.Context, dir string, only *regexp.Regexp) []plot {
	var out []plot
	for _, p := range plots {
		argv := append([]string{"perf", "local"}, strings.Fields(p.flags)...)
		argv = append(append(argv, "--baseline"), tryFor(r.try)...)
		argv = append(argv, "--rounds", "1", "--duration", plotTime(r.duration).String(), "--svg")
		c := command{argv: append([]string{urnic.binary}, append(argv, p.File)...)}
		p.Command = c.String()
		c.argv[len(c.argv)-1] = filepath.Join(dir, p.File)
		if p.NotRun = !only.MatchString(p.name()); !p.NotRun {
			if err := runPlot(ctx, c); err != nil {
				p.Error = err.Error()
			}
			fmt.Fprintf(r.log, "plot  %-32s %s\n", p.File, p.Error)
		}
		out = append(out, p)
	}
	return out
}

func runPlot(ctx context.Context, c command) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if _, err := c.run(ctx); err != nil {
		return err
	}
	_, err := os.Stat(c.argv[len(c.argv)-1])
	return err
}
