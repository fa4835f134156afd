package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"text/tabwriter"

	"github.com/schollz/progressbar/v3"

	"urnic/internal/program/perf"
	"urnic/rnic"
	"urnic/ulp/nfs/nfsbench"
)

// A nfsLocalReport is what urnic nfs bench --local finds out.
type nfsLocalReport struct {
	FileSize int64             `json:"file_size"`
	CRC      bool              `json:"crc"`
	Results  []*nfsLocalResult `json:"results"`
	Error    string            `json:"error,omitempty"`
}

// A nfsLocalResult is what one test came to over both transports, and what RDMA does in the
// same rounds with nothing above it. Figures are medians of the rounds, and so are ratios
// of those that each round has.
type nfsLocalResult struct {
	Test    nfsbench.Test `json:"test"`
	Size    int           `json:"size,omitempty"`
	Depth   int           `json:"depth,omitempty"`
	Callers int           `json:"callers,omitempty"`

	RDMA *nfsLocalFigures `json:"rdma"`
	TCP  *nfsLocalFigures `json:"tcp"`
	// RDMA Writes of the size of write and read, and a Send of 64 bytes and its answer,
	// for null.
	Raw *nfsLocalFigures `json:"raw,omitempty"`

	ToTCP float64 `json:"ratio_to_tcp,omitempty"` // of calls a second
	ToRaw float64 `json:"ratio_to_raw,omitempty"` // of bytes a second; of null, of the time of a call
}

type nfsLocalFigures struct {
	Bytes   []float64 `json:"bytes_per_second,omitempty"` // of each round
	Calls   []float64 `json:"calls_per_second,omitempty"`
	Latency []float64 `json:"p50_ns,omitempty"`
}

// runLocal measures a server in this process, with a tree in memory.
func (o *nfsBenchOptions) runLocal(ctx context.Context, stdout, stderr io.Writer) (err error) {
	server := nfsdOptions{
		deviceFlags: o.deviceFlags,
		tcp:         "127.0.0.1:0", rdma: "127.0.0.1:0", squash: "none", memory: true, maxMemory: "8G", rsize: "16M", wsize: "16M", json: true,
	}
	if err := server.check(); err != nil {
		return err
	}
	said, tell := io.Pipe()
	serving, stop := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		err := runNFSD(serving, &server, tell, stderr)
		over <- errors.Join(err, tell.Close())
	}()
	defer func() {
		stop()
		if failed := <-over; ctx.Err() == nil { // else it may not have ended in time
			err = errors.Join(err, failed)
		}
	}()
	var at struct{ TCP, RDMA string }
	if err := json.NewDecoder(said).Decode(&at); err != nil {
		return fmt.Errorf("the server has not begun: %w", err)
	}
	profiled, err := startProfile(o.cpuProfile)
	if err != nil {
		return err
	}
	report := &nfsLocalReport{FileSize: o.FileSize, CRC: o.crc != "off"} // both sides are ours
	bar := newProgress(stderr, int64(o.Rounds), progressbar.OptionSetDescription("bench, rounds"))
	for range o.Rounds {
		if err = o.localRound(ctx, report, at.TCP, at.RDMA); err != nil {
			break
		}
		bar.add(1)
	}
	bar.end()
	err = errors.Join(err, profiled())
	for _, r := range report.Results {
		r.compare()
	}
	if o.json {
		report.Error = reason(ctx, err)
		return errors.Join(err, writeJSON(stdout, "urnic-nfs-bench-local/1", report))
	}
	return errors.Join(err, report.table(stdout))
}

// localRound measures all once.
func (o *nfsBenchOptions) localRound(ctx context.Context, report *nfsLocalReport, tcp, rdma string) error {
	_, mount, _ := net.SplitHostPort(tcp)
	for _, t := range []struct {
		url string
		of  func(r *nfsLocalResult) **nfsLocalFigures
	}{
		{"nfs+rdma://" + rdma + "/memory?mountport=" + mount, func(r *nfsLocalResult) **nfsLocalFigures { return &r.RDMA }},
		{"nfs://" + tcp + "/memory", func(r *nfsLocalResult) **nfsLocalFigures { return &r.TCP }},
	} {
		results, err := o.bench(ctx, t.url)
		if err != nil {
			return err
		}
		for _, r := range results {
			report.find(r).note(t.of, r)
		}
	}
	for _, r := range report.Results {
		raw, err := o.raw(ctx, r)
		if err != nil {
			return err
		}
		if raw == nil {
			continue
		}
		if r.Raw == nil {
			r.Raw = &nfsLocalFigures{}
		}
		r.Raw.add(raw)
	}
	return nil
}

// bench measures a server once.
func (o *nfsBenchOptions) bench(ctx context.Context, url string) (results []nfsbench.Result, err error) {
	own := *o
	own.json, own.Rounds = true, 1 // nothing is shown meanwhile
	return own.measure(ctx, url, io.Discard, io.Discard)
}

// raw measures what RDMA itself does that a test may be compared with.
func (o *nfsBenchOptions) raw(ctx context.Context, r *nfsLocalResult) (*nfsLocalFigures, error) {
	p := perfOptions{Options: perf.Options{Duration: o.Duration, Rounds: 1, NoCRC: o.crc == "off"}}
	switch {
	case r.Test == nfsbench.Write || r.Test == nfsbench.Read:
		p.Op, p.Test, p.Sizes = perf.OpWrite, perf.TestBandwidth, []int{r.Size}
	case r.Test == nfsbench.Null && r.Callers == 1:
		p.Op, p.Test, p.Sizes = perf.OpSend, perf.TestLatency, []int{64}
	default:
		return nil, nil
	}
	got, err := perfBeside(ctx, &p)
	if err != nil {
		return nil, err
	}
	f := &nfsLocalFigures{}
	for _, one := range got.Results {
		if p.Test == perf.TestLatency {
			f.Latency = append(f.Latency, float64(one.RoundTrip.P50))
		} else {
			f.Bytes = append(f.Bytes, one.BytesPerSecond)
		}
	}
	return f, nil
}

// find returns the result of a test, which it adds if there is none.
func (report *nfsLocalReport) find(r nfsbench.Result) *nfsLocalResult {
	for _, have := range report.Results {
		if have.Test == r.Test && have.Size == r.Size && have.Depth == r.Depth && have.Callers == r.Callers {
			return have
		}
	}
	own := &nfsLocalResult{Test: r.Test, Size: r.Size, Depth: r.Depth, Callers: r.Callers}
	report.Results = append(report.Results, own)
	return own
}

func (own *nfsLocalResult) note(of func(*nfsLocalResult) **nfsLocalFigures, r nfsbench.Result) {
	f := of(own)
	if *f == nil {
		*f = &nfsLocalFigures{}
	}
	one := &nfsLocalFigures{Calls: []float64{r.Calls}}
	if r.Bytes > 0 {
		one.Bytes = []float64{r.Bytes}
	}
	if r.Latency != nil {
		one.Latency = []float64{float64(r.Latency.P50)}
	}
	(*f).add(one)
}

func (f *nfsLocalFigures) add(g *nfsLocalFigures) {
	f.Bytes, f.Calls, f.Latency = append(f.Bytes, g.Bytes...), append(f.Calls, g.Calls...), append(f.Latency, g.Latency...)
}

// compare makes the ratios.
func (own *nfsLocalResult) compare() {
	if own.RDMA == nil || own.TCP == nil {
		return
	}
	own.ToTCP = medianRatio(own.RDMA.Calls, own.TCP.Calls)
	switch {
	case own.Raw == nil:
	case own.Test == nfsbench.Null:
		own.ToRaw = medianRatio(own.RDMA.Latency, own.Raw.Latency)
	default:
		own.ToRaw = medianRatio(own.RDMA.Bytes, own.Raw.Bytes)
	}
}

// medianRatio returns the median of the ratios of the rounds, of as many as there are.
func medianRatio(a, b []float64) float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return nfsbench.Median(ratios)
}

// table prints the report as human-readable text.
func (report *nfsLocalReport) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	mega := func(f *nfsLocalFigures) string { return fmt.Sprintf("%.0f", nfsbench.Median(f.Bytes)/1e6) }
	micros := func(f *nfsLocalFigures) string { return fmt.Sprintf("%.1f", nfsbench.Median(f.Latency)/1e3) }
	var last nfsbench.Test
	for _, r := range report.Results {
		if r.RDMA == nil || r.TCP == nil {
			continue
		}
		long := r.Depth > 0
		switch {
		case last == r.Test:
		case long:
			fmt.Fprintf(t, "test\tbytes\tdepth\tRDMA MB/s\tTCP MB/s\tto TCP\tWrite MB/s\tto Write\t\n")
		default:
			fmt.Fprintf(t, "test\tbytes\tcallers\tRDMA/s\tTCP/s\tto TCP\tRDMA p50 µs\tTCP p50 µs\tSend µs\t\n")
		}
		last = r.Test
		switch {
		case long && r.Raw != nil:
			fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%.2f\t%s\t%.2f\t\n", r.Test, r.Size, r.Depth, mega(r.RDMA), mega(r.TCP), r.ToTCP, mega(r.Raw), r.ToRaw)
		case !long:
			raw := ""
			if r.Raw != nil {
				raw = micros(r.Raw)
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%.0f\t%.2f\t%s\t%s\t%s\t\n", r.Test, r.Size, r.Callers,
				nfsbench.Median(r.RDMA.Calls), nfsbench.Median(r.TCP.Calls), r.ToTCP, micros(r.RDMA), micros(r.TCP), raw)
		}
	}
	return t.Flush()
}

// perfBeside measures between two devices in this process, and shows nothing.
func perfBeside(ctx context.Context, o *perfOptions) (report *perf.Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	err = withPerfServer(ctx, o, func(address string) error {
		dev, err := rnic.Open(rnic.Config{Name: "client"})
		if err != nil {
			return err
		}
		report, err = perf.Run(ctx, dev, &perf.Segments{}, address, o.Options)
		return errors.Join(err, dev.Close())
	})
	return report, err
}
