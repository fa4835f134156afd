//go:build linux

package dropin

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"

	"urnic/internal/door"
	"urnic/internal/host/infosock"
	"urnic/rnic/rnicinfo"
)

// A reporter shows other processes of the user what the engine has: see package rnicinfo.
type reporter struct {
	wg     sync.WaitGroup
	mu     sync.Mutex // of what follows
	server *infosock.Server
	ended  bool
}

// serveReports serves reports in a directory. It does so beside the program, as the directory may have
// sockets of processes that hang, which cost time.
func (e *Engine) serveReports(dir string) {
	began, command := time.Now(), commandLine()
	e.reporter.wg.Go(func() {
		s, err := rnicinfo.ServeReports(dir, func() *rnicinfo.Report { return rnicinfo.NewReport(command, began, e.describe()) })
		if err != nil { // the program does without
			e.log.printf(logInfo, "urnic top does not see this process: %v", err)
			return
		}
		r := &e.reporter
		r.mu.Lock()
		if !r.ended {
			r.server, s = s, nil
		}
		r.mu.Unlock()
		if s != nil {
			_ = s.Close() // nobody has asked there yet
		}
	})
}

// leave removes the socket of a process that exits.
func (r *reporter) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended = true; r.server != nil {
		_ = os.Remove(r.server.Path()) // or a reader removes it later
	}
}

// close ends the reports.
func (r *reporter) close() error {
	r.mu.Lock()
	s := r.server
	r.ended = true
	r.mu.Unlock()
	r.wg.Wait()
	if s == nil {
		return nil
	}
	return s.Close()
}

// commandLine returns how the process was started, in one line.
func commandLine() string {
	b, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return ""
	}
	args := strings.Split(string(bytes.TrimRight(b, "\x00")), "\x00")
	return strings.Join(args, " ")
}

// describe returns what the engine has.
func (e *Engine) describe() rnicinfo.Device {
	d := rnicinfo.DescribeDevice(e.device)
	var names []string
	for i := range e.devices {
		names = append(names, e.devices[i].name)
	}
	d.Name = strings.Join(names, ",")
	type use struct{ qps, unpolled int }
	uses := map[Handle]*use{}
	of := func(cq Handle) *use {
		if uses[cq] == nil {
			uses[cq] = new(use)
		}
		return uses[cq]
	}
	e.qps.each(func(h Handle, q *qp) {
		r, number := e.describeQP(h, q)
		if number != ok {
			return
		}
		if of(q.init.SendCQ).qps++; q.init.RecvCQ != q.init.SendCQ {
			of(q.init.RecvCQ).qps++
		}
		of(q.init.RecvCQ).unpolled += *r.Unpolled
		if len(d.QPs) < rnicinfo.MostListed {
			d.QPs = append(d.QPs, r)
		}
	})
	e.cqs.each(func(h Handle, c *completionQueue) {
		if len(d.CQs) < rnicinfo.MostListed {
			u, polled := of(h), c.polled.Load()
			d.CQs = append(d.CQs, rnicinfo.CQ{Num: c.verbs.Num(), Entries: c.verbs.Entries(), QPs: u.qps, Polled: &polled, Unpolled: &u.unpolled})
		}
	})
	e.srqs.each(func(_ Handle, s *sharedQueue) {
		if len(d.SRQs) < rnicinfo.MostListed {
			d.SRQs = append(d.SRQs, rnicinfo.DescribeSRQ(s.verbs))
		}
	})
	e.regions.each(func(_ Handle, m *region) {
		if r, valid := rnicinfo.DescribeMR(m.verbs.Load()); valid && len(d.MRs) < rnicinfo.MostListed {
			d.MRs = append(d.MRs, r)
		}
	})
	d.Sort()
	return d
}

// describeQP returns what a queue pair tells, as its program sees it. The errno says that it is gone.
func (e *Engine) describeQP(h Handle, q *qp) (rnicinfo.QP, Errno) {
	var attr QPAttr
	if number := e.QPQuery(h, &attr); number != ok {
		return rnicinfo.QP{}, number
	}
	r := rnicinfo.DescribeQP(q.verbs)
	r.State, r.MaxSendWR, r.MaxRecvWR = stateNames[attr.State], int(q.init.MaxSendWR), int(q.init.MaxRecvWR)
	outstanding, unpolled := door.Outstanding(q.verbs), door.Unpolled(q.verbs)
	if d := q.datagram; d != nil {
		if r.Type = "UD"; d.kind == qptUC {
			r.Type = "UC"
		}
		r.Sent, r.Received = nil, nil // they are not of RDMAP
		unpolled, outstanding = int(d.unpolledRecvs.Load()), int(d.unpolledSends.Load())
	}
	r.Outstanding, r.Unpolled = &outstanding, &unpolled
	return r, ok
}
