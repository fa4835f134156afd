package rnicinfo

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
	"weak"

	"urnic/internal/host/infosock"
	"urnic/rnic"
)

// kind begins the names of sockets.
const kind = "rnic"

// A Server serves what a device has.
type Server struct {
	*infosock.Server
	device *rnic.Device
	began  time.Time

	mu  sync.Mutex // of what follows
	qps []weak.Pointer[rnic.QP]
	mrs []weak.Pointer[rnic.MR]
}

// Serve serves a device of a command at a socket in a directory, "" for the user's own, until
// Close. A program that opens a device may do so, and closes the server before the device.
func Serve(d *rnic.Device, command, dir string) (*Server, error) {
	s := &Server{device: d, began: time.Now()}
	var err error
	s.Server, err = ServeReports(dir, func() *Report {
		return NewReport(command, s.began, s.describe())
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ServeReports serves what a function returns, for a process that describes its devices itself, in a
// directory, "" for the user's own, until Close. The function is called from several goroutines.
func ServeReports(dir string, report func() *Report) (*infosock.Server, error) {
	s, err := infosock.Serve(dir, kind, func() any { return report() })
	if err != nil {
		return nil, fmt.Errorf("rnicinfo: %w", err)
	}
	return s, nil
}

// NewReport returns the report of this process on a device that has been served since a time.
func NewReport(command string, since time.Time, d Device) *Report {
	return &Report{Version: Version, PID: os.Getpid(), Command: cut(command), Seconds: time.Since(since).Seconds(), Device: d}
}

// An Object is what a program can show: a *rnic.QP or a *rnic.MR.
type Object interface{ Close() error }

// Show lists queue pairs, with the queues that they use, and regions from now on, until they are
// closed. Other objects are ignored, and so is nil.
func (s *Server) Show(objects ...Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for _, o := range objects {
		switch o := o.(type) {
		case *rnic.QP:
			if p := weak.Make(o); o != nil && !slices.Contains(s.qps, p) {
				s.qps = append(s.qps, p)
			}
		case *rnic.MR:
			if p := weak.Make(o); o != nil && !slices.Contains(s.mrs, p) {
				s.mrs = append(s.mrs, p)
			}
		}
	}
}

// Hide lists objects no longer. Those that are closed need it not.
func (s *Server) Hide(objects ...Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		switch o := o.(type) {
		case *rnic.QP:
			s.qps = slices.DeleteFunc(s.qps, func(p weak.Pointer[rnic.QP]) bool { return p.Value() == o })
		case *rnic.MR:
			s.mrs = slices.DeleteFunc(s.mrs, func(p weak.Pointer[rnic.MR]) bool { return p.Value() == o })
		}
	}
}

// forget takes out what nobody has any more. The caller holds mu.
func (s *Server) forget() {
	s.qps = slices.DeleteFunc(s.qps, func(p weak.Pointer[rnic.QP]) bool { return p.Value() == nil })
	s.mrs = slices.DeleteFunc(s.mrs, func(p weak.Pointer[rnic.MR]) bool { return p.Value() == nil })
}

// shown returns what is there of that which the program has shown.
func (s *Server) shown() (qps []*rnic.QP, mrs []*rnic.MR) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for _, p := range s.qps {
		if q := p.Value(); q != nil {
			qps = append(qps, q)
		}
	}
	for _, p := range s.mrs {
		if m := p.Value(); m != nil {
			mrs = append(mrs, m)
		}
	}
	return qps, mrs
}

// describe returns what the device and the objects shown have.
func (s *Server) describe() Device {
	d := DescribeDevice(s.device)
	qps, mrs := s.shown()
	users := map[*rnic.CQ]int{}
	srqs := map[*rnic.SRQ]bool{}
	for _, q := range qps {
		if isClosed(q) {
			s.Hide(q)
			continue
		}
		if len(d.QPs) == MostListed {
			break
		}
		d.QPs = append(d.QPs, DescribeQP(q))
		a := q.Attr()
		users[a.SendCQ]++
		if a.RecvCQ != a.SendCQ {
			users[a.RecvCQ]++
		}
		if a.SRQ != nil {
			srqs[a.SRQ] = true
		}
	}
	for c, n := range users {
		d.CQs = append(d.CQs, CQ{Num: c.Num(), Entries: c.Entries(), QPs: n})
	}
	for q := range srqs {
		d.SRQs = append(d.SRQs, DescribeSRQ(q))
	}
	for _, m := range mrs {
		if r, valid := DescribeMR(m); valid && len(d.MRs) < MostListed {
			d.MRs = append(d.MRs, r)
		}
	}
	d.Sort()
	return d
}

// isClosed reports whether a queue pair is closed. One that is connected is not; of others, the
// verbs tell it in answer to a post of nothing.
func isClosed(q *rnic.QP) bool {
	return q.State() != rnic.RTS && errors.Is(q.PostSend(), rnic.ErrClosed)
}
