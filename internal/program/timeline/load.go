package timeline

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"urnic/rnic/rnictimeline"
)

// mostProcesses is how many processes are read.
const mostProcesses = 64

// Load reads what was recorded into a directory. The error says which file is not to be read.
func Load(ctx context.Context, dir string) (*Timeline, error) {
	names, err := filepath.Glob(filepath.Join(escape(dir), "*.events"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if _, err := os.ReadDir(dir); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s holds no recording: no program that was recorded has used a device", dir)
	}
	t := &Timeline{}
	note := ""
	if len(names) > mostProcesses {
		note = fmt.Sprintf("%d more processes are left out", len(names)-mostProcesses)
		names = names[:mostProcesses]
	}
	lists := make([][]rnictimeline.Event, len(names))
	for i, name := range names {
		if lists[i], err = readEvents(name); err != nil {
			return nil, err
		}
		if len(lists[i]) > 0 && (t.Start.IsZero() || lists[i][0].Time.Before(t.Start)) {
			t.Start = lists[i][0].Time
		}
	}
	var all []*matcher
	for i, name := range names {
		stem := strings.TrimSuffix(name, ".events")
		w, err := readWire(ctx, stem+".pcapng")
		p := Process{Number: i + 1, Name: filepath.Base(stem), Note: note}
		if err != nil {
			if w == nil || ctx.Err() != nil {
				return nil, err
			}
			p.Note = err.Error()
		}
		m := newMatcher(t.Start, w)
		for j := range lists[i] {
			m.event(&lists[i][j])
		}
		m.finish()
		p.PID, _ = strconv.Atoi(strings.SplitN(p.Name, "-", 2)[0]) // of a file that was given another name: 0
		p.Connections, p.Unmatched = w.number, m.bad
		if len(lists[i]) == rnictimeline.MostEvents {
			p.Note = fmt.Sprintf("only the first %d events were recorded", rnictimeline.MostEvents)
		}
		t.Processes, all = append(t.Processes, p), append(all, m)
	}
	placedAtPeers(all)
	for i, m := range all {
		for _, p := range m.all {
			if p.hidden {
				continue
			}
			p.Process = i
			t.Processes[i].Requests++
			t.Requests = append(t.Requests, p.Request)
		}
	}
	slices.SortStableFunc(t.Requests, func(a, b Request) int { return cmp.Compare(begin(&a), begin(&b)) })
	return t, nil
}

func begin(r *Request) time.Duration {
	first, _ := r.span()
	return first
}

func readEvents(name string) ([]rnictimeline.Event, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return nil, nil // the program was killed at once
	}
	list, err := rnictimeline.ReadEvents(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// escape makes a pattern of a path that only the path matches.
func escape(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if strings.IndexByte(`*?[\`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
