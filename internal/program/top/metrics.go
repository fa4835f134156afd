package top

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"urnic/rnic/rnicinfo"
)

// MetricsType is the media type of metrics.
const MetricsType = "text/plain; version=0.0.4; charset=utf-8"

// A family is a Prometheus metric with its samples.
type family struct {
	name, kind, help string
	samples          strings.Builder
}

// add adds a sample: labels are names and values by turns.
func (f *family) add(value uint64, labels ...string) {
	f.samples.WriteString(f.name)
	for i := 0; i+1 < len(labels); i += 2 {
		f.samples.WriteByte("{,"[min(i, 1)])
		f.samples.WriteString(labels[i] + `="` + escapeLabel(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		f.samples.WriteByte('}')
	}
	f.samples.WriteString(" " + strconv.FormatUint(value, 10) + "\n")
}

// escapeLabel escapes the value of a label.
func escapeLabel(s string) string {
	s = strings.ToValidUTF8(s, "?")
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}

// WriteMetrics writes a round in Prometheus' text format. It has counters, and no rates.
func (r *Round) WriteMetrics(w io.Writer) error {
	m := newMetrics()
	m.unanswered.add(uint64(len(r.Unanswered)))
	for i := range r.Processes {
		m.process(&r.Processes[i])
	}
	for _, f := range m.all {
		if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s", f.name, f.help, f.name, f.kind, f.samples.String()); err != nil {
			return err
		}
	}
	return nil
}

// metrics are the families that there are.
type metrics struct {
	all []*family

	unanswered, info, connections, held                            *family
	messages, bytes                                                *family
	qpState, qpMessages, qpBytes, qpOutstanding, qpUnpolled        *family
	cqEntries, cqPolled, cqUnpolled, srqPosted, mrLength, mrPlaced *family
}

func newMetrics() *metrics {
	m := new(metrics)
	add := func(name, kind, help string) *family {
		f := &family{name: "urnic_" + name, kind: kind, help: help}
		m.all = append(m.all, f)
		return f
	}
	m.unanswered = add("unanswered_processes", "gauge", "Processes that gave no answer that makes sense.")
	m.info = add("process_info", "gauge", "1 for each process, with its command.")
	m.connections = add("connections_total", "counter", "Connections, by what became of them.")
	m.held = add("held_objects", "gauge", "Objects that a device holds, and bytes of memory.")
	m.messages = add("messages_total", "counter", "RDMA Messages, by direction and opcode.")
	m.bytes = add("message_bytes_total", "counter", "Bytes of RDMA Messages above DDP, by direction and opcode.")
	m.qpState = add("qp_state", "gauge", "1 for each queue pair, with its state and peer.")
	m.qpMessages = add("qp_messages_total", "counter", "RDMA Messages of a queue pair.")
	m.qpBytes = add("qp_bytes_total", "counter", "Bytes of RDMA Messages of a queue pair above DDP.")
	m.qpOutstanding = add("qp_outstanding_requests", "gauge", "Requests in a send queue that have not completed.")
	m.qpUnpolled = add("qp_unpolled_receives", "gauge", "Messages received whose completions nobody has polled.")
	m.cqEntries = add("cq_entries", "gauge", "Completions that a completion queue has room for.")
	m.cqPolled = add("cq_polled_completions_total", "counter", "Completions that the program has polled.")
	m.cqUnpolled = add("cq_unpolled_receives", "gauge", "Completions of receives that the program has not polled.")
	m.srqPosted = add("srq_posted_receives", "gauge", "Receives in a shared receive queue.")
	m.mrLength = add("mr_length_bytes", "gauge", "Length of a memory region.")
	m.mrPlaced = add("mr_placed_bytes_total", "counter", "Bytes placed into a memory region.")
	return m
}

func (m *metrics) process(p *Process) {
	d, h := &p.Device, &p.Device.Held
	pid, device := strconv.Itoa(p.PID), d.Name
	of := []string{"pid", pid, "device", device, "socket", lastOf(p.Socket)}
	with := func(labels ...string) []string { return slices.Concat(of, labels) }
	m.info.add(1, with("command", p.Command)...)
	for _, c := range []struct {
		outcome string
		n       uint64
	}{
		{"connected", d.Connected}, {"accepted", d.Accepted}, {"rejected", d.Rejected}, {"dropped", d.Dropped}, {"failed", d.Failed}, {"lost", d.Lost},
	} {
		m.connections.add(c.n, with("outcome", c.outcome)...)
	}
	for _, c := range []struct {
		object string
		n      uint64
	}{
		{"qp", h.QPs},
		{"cq", h.CQs},
		{"srq", h.SRQs},
		{"mr", h.MRs},
		{"window", h.Windows},
		{"memory_bytes", h.MemoryBytes},
		{"stream_bytes", h.StreamBytes},
		{"listener", h.Listeners},
		{"half_open", h.HalfOpen},
	} {
		m.held.add(c.n, with("object", c.object)...)
	}
	for _, o := range d.Messages {
		m.messages.add(o.Sent.Messages, with("direction", "sent", "op", o.Op)...)
		m.messages.add(o.Received.Messages, with("direction", "received", "op", o.Op)...)
		m.bytes.add(o.Sent.Bytes, with("direction", "sent", "op", o.Op)...)
		m.bytes.add(o.Received.Bytes, with("direction", "received", "op", o.Op)...)
	}
	for i := range d.QPs {
		m.qp(&d.QPs[i], with)
	}
	for i := range d.CQs {
		c := &d.CQs[i]
		labels := with("cq", strconv.FormatUint(uint64(c.Num), 10))
		m.cqEntries.add(natural(&c.Entries), labels...)
		if c.Polled != nil {
			m.cqPolled.add(*c.Polled, labels...)
		}
		if c.Unpolled != nil {
			m.cqUnpolled.add(natural(c.Unpolled), labels...)
		}
	}
	for i := range d.SRQs {
		m.srqPosted.add(natural(&d.SRQs[i].Posted), with("srq", strconv.FormatUint(uint64(d.SRQs[i].Num), 10))...)
	}
	for i := range d.MRs {
		r := &d.MRs[i]
		m.mrLength.add(r.Length, with("mr", r.STag)...)
		m.mrPlaced.add(r.BytesIn, with("mr", r.STag)...)
	}
}

// qp adds what a queue pair has.
func (m *metrics) qp(q *rnicinfo.QP, with func(...string) []string) {
	num := fmt.Sprintf("0x%06x", q.Num)
	m.qpState.add(1, with("qp", num, "type", q.Type, "state", q.State, "peer", q.Remote)...)
	for direction, c := range map[string]*rnicinfo.Count{"sent": q.Sent, "received": q.Received} {
		if c != nil {
			m.qpMessages.add(c.Messages, with("qp", num, "direction", direction)...)
			m.qpBytes.add(c.Bytes, with("qp", num, "direction", direction)...)
		}
	}
	if q.Outstanding != nil {
		m.qpOutstanding.add(natural(q.Outstanding), with("qp", num)...)
	}
	if q.Unpolled != nil {
		m.qpUnpolled.add(natural(q.Unpolled), with("qp", num)...)
	}
}

// natural is a number that is not negative.
func natural(n *int) uint64 { return uint64(max(*n, 0)) }
