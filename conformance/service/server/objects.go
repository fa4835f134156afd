package server

import (
	"context"
	"encoding/binary"
	"fmt"

	"urnic/conformance/service"
	"urnic/mpa"
	"urnic/rnic"
)

// number returns the number of a new object. The caller holds mu.
func (c *session) number() int {
	c.last++
	return c.last
}

// find returns an object of the session.
func find[T any](c *session, objects map[int]T, n int, kind string) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := objects[n]
	if !ok {
		return v, &service.Error{Code: service.CodeUnknown, Message: fmt.Sprintf("the session has no %s %d", kind, n)}
	}
	return v, nil
}

// add numbers an object of the session.
func add[T any](c *session, objects map[int]T, v T) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.number()
	objects[n] = v
	return n
}

// remove takes an object out of the session.
func remove[T any](c *session, objects map[int]T, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(objects, n)
}

func (c *session) hello(_ context.Context, a *service.HelloArgs) (any, error) {
	if a.Version != service.Version {
		return nil, &service.Error{Code: service.CodeVersion, Message: fmt.Sprintf("this server speaks version %d of the protocol, not %d", service.Version, a.Version)}
	}
	c.said = true
	c.server.speaks(c)
	attr := c.dev.Attr()
	h := &service.Hello{
		Version: service.Version, Implementation: "urnic", Release: c.server.Release, LLP: service.LLPTCP,
		Features: service.Features{
			Revisions: []int{int(mpa.Revision1), int(mpa.Revision2)}, CRC: names(policies), Markers: true,
			PeerToPeer: true, RTR: names(rtrs), ULPDepths: true, MULPDU: true, Hold: true,
			Atomics: attr.Atomics, ByteOrder: byteOrder(), Immediate: attr.Immediate, Invalidate: true, ReadInvalidate: true,
			FastRegistration: attr.FastRegister, ZeroBased: attr.ZeroBased, Base: true, StreamMR: true,
			SRQ: attr.SRQ, SRQShare: attr.SRQ, Requests: true,
		},
		Limits: service.Limits{
			IRD: attr.MaxIRD, ORD: attr.MaxORD, PrivateData: attr.PrivateData, Message: service.Uint64(attr.MaxMessage),
			SGE: attr.MaxSGE, Inline: attr.MaxInline, Line: service.MaxLine, Data: maxData, Timeout: int(maxTimeout.Milliseconds()),
			Domains: maxDomains, QPs: maxQPs, SRQs: maxSRQs, Listeners: maxListener, Depth: maxDepth, Entries: maxEntries,
			Regions: maxObjects, Windows: maxObjects, Octets: service.Uint64(c.server.Octets),
		},
	}
	if attr.Windows {
		h.Features.Windows = []int{1, 2}
	}
	if c.server.Device.LowerLayer != nil { // what only MPA over TCP has
		h.LLP = service.LLPRDP
		f := &h.Features
		f.Revisions, f.CRC, f.RTR = []int{}, []string{}, []string{}
		f.Markers, f.PeerToPeer, f.ULPDepths, f.MULPDU, f.Requests = false, false, false, false, false
	}
	return h, nil
}

// byteOrder is that of this machine's numbers.
func byteOrder() string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return "little"
	}
	return "big"
}

func (c *session) configure(ctx context.Context, a *service.ConfigureArgs) (any, error) {
	if a.Revision < 0 || a.Revision > int(mpa.Revision2) {
		return nil, bad("revision %d: say 1, 2, or 0 for either", a.Revision)
	}
	for name, n := range map[string]int{"request_timeout_ms": a.RequestTimeout, "answer_timeout_ms": a.AnswerTimeout, "close_timeout_ms": a.CloseTimeout} {
		if _, err := c.time(name, n); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	objects := len(c.pds) - 1 + len(c.qps) + len(c.srqs) + len(c.mrs) + len(c.mws) + len(c.listeners) + len(c.held)
	c.mu.Unlock()
	if objects > 0 {
		return nil, &service.Error{Code: service.CodeState, Message: fmt.Sprintf("the session has %d objects already: configure comes before all of them", objects)}
	}
	c.cancel()
	if err := c.dev.Close(); err != nil {
		return nil, err
	}
	c.wg.Wait()
	c.config = *a
	return nil, c.open(ctx)
}

func (c *session) allocPD(context.Context, *struct{}) (any, error) {
	p, err := c.dev.AllocPD()
	if err != nil {
		return nil, err
	}
	return &service.PD{PD: add(c, c.pds, p)}, nil
}

func (c *session) closePD(_ context.Context, a *service.PD) (any, error) {
	p, err := find(c, c.pds, a.PD, "protection domain")
	switch {
	case err != nil:
		return nil, err
	case a.PD == 0:
		return nil, &service.Error{Code: service.CodeState, Message: "protection domain 0 ends with the session"}
	}
	if err := p.Close(); err != nil {
		return nil, err
	}
	remove(c, c.pds, a.PD)
	return nil, nil
}

func (c *session) event(ctx context.Context, a *service.WaitArgs) (any, error) {
	ctx, cancel, err := limit(ctx, a.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	e, ok := c.dev.PollEvent()
	if !ok {
		if e, err = c.dev.WaitEvent(ctx); err != nil {
			return nil, timely(ctx, err)
		}
	}
	r := &service.Event{Type: events[e.Type], Text: e.String(), Lost: e.Lost, Failure: failureOf(e.Err)}
	if e.Terminate != nil {
		r.Failure = &service.Failure{Class: service.ClassPeer, Text: e.Terminate.String(), Terminate: terminateOf(e.Terminate, service.Received)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, q := range c.qps {
		switch {
		case e.CQ != nil && e.CQ == q.send.cq:
			r.QP, r.Queue = n, service.SendQueue
		case e.CQ != nil && e.CQ == q.recv.cq:
			r.QP, r.Queue = n, service.RecvQueue
		case e.QP == q.rnic:
			r.QP = n
		}
	}
	for n, s := range c.srqs {
		if e.SRQ == s.rnic {
			r.SRQ = n
		}
	}
	return r, nil
}

// timely is err, or that the time of an operation was up.
func timely(ctx context.Context, err error) error {
	if context.Cause(ctx) == errTimeout { //nolint:errorlint // it is this very value
		return errTimeout
	}
	return err
}

func (c *session) counters(context.Context, *struct{}) (any, error) {
	n := c.dev.Counters()
	return &service.Counters{
		Connected: n.Connected, Accepted: n.Accepted, Rejected: n.Rejected, Dropped: n.Dropped, Failed: n.Failed, Lost: n.Lost,
		Sent: counts(n.Messages.Sent[:]), Received: counts(n.Messages.Received[:]),
	}, nil
}

// domain returns a protection domain.
func (c *session) domain(n int) (*rnic.PD, error) { return find(c, c.pds, n, "protection domain") }
