package mpa

import (
	"errors"
	"fmt"
	"slices"
)

// A Role is an endpoint's side of the start-up. It is independent of which side
// opened the TCP connection (RFC 5044 §7.1).
type Role uint8

// The roles.
const (
	Initiator Role = iota + 1
	Responder
)

// String names the role.
func (r Role) String() string {
	switch r {
	case Initiator:
		return "initiator"
	case Responder:
		return "responder"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Params is the result of start-up for a connection.
type Params struct {
	Role        Role
	Revision    uint8
	CRC         bool // both directions compute and check CRCs
	SendMarkers bool // the peer wants markers
	RecvMarkers bool // we do
	Enhanced    bool // IRD and ORD were exchanged

	IRD, ORD uint16 // ours, as negotiated
	// PeerIRD and PeerORD are the values as the peer sent them, for the ULP
	// (RFC 6581 §9.1). They are zero without Enhanced.
	PeerIRD, PeerORD uint16

	PeerToPeer bool
	// RTR is, for an Initiator, the indication to send, for a Responder, those
	// to accept. Zero without PeerToPeer.
	RTR RTR

	PrivateData []byte // the ULP's, from the peer
}

// request returns the Request Frame that an Initiator sends. It fails with a
// *ConfigError if there is too much private data.
func (c *Config) request() (Frame, error) {
	if err := checkPrivateData(c.PrivateData, c.enhanced()); err != nil {
		return Frame{}, err
	}
	f := Frame{Revision: Revision1, CRC: c.CRC != CRCOff, Markers: c.Markers}
	if c.Revision == Revision2 {
		f.Revision = Revision2
	}
	if !c.enhanced() {
		f.PrivateData = c.PrivateData
		return f, nil
	}
	f.Revision, f.Enhanced = Revision2, true
	e := Enhanced{IRD: c.IRD, ORD: c.ORD}
	if c.ULPDepths {
		e.IRD, e.ORD = DepthNotNegotiated, DepthNotNegotiated
	}
	if c.PeerToPeer {
		e.PeerToPeer, e.RTR = true, c.rtr() // "MUST set each … of the options it supports": RFC 6581 §9.2
	}
	pd, err := e.AppendBinary(make([]byte, 0, EnhancedLen+len(c.PrivateData)))
	f.PrivateData = append(pd, c.PrivateData...)
	return f, err
}

// errRevision1 says that a peer seems to know only revision 1.
var errRevision1 = errors.New("the peer seems to know only revision 1")

// checkRequest validates a Request as RFC 5044 §7.1.1 and RFC 6581 §10 require
// of a Responder.
func (c *Config) checkRequest(f *Frame) error {
	switch {
	case f.Reply:
		// The other side must be an Initiator for this one to respond.
		return startupError("RFC 5044 §7.1.2", "a Reply Frame came in place of a Request: both sides are Responders")
	case f.Revision != Revision1 && f.Revision != Revision2:
		return startupError("RFC 5044 §7.1.1", "the Request has revision %d; this side speaks 1 and 2", f.Revision)
	case c.Revision == Revision1 && f.Revision != Revision1:
		return startupError("RFC 6581 §10", "the Request has revision %d; this side is set to 1", f.Revision)
	case c.Revision == Revision2 && f.Revision != Revision2:
		return startupError("RFC 5044 §7.1.1", "the Request has revision %d; this side is set to 2", f.Revision)
	}
	if f.Enhanced {
		if _, err := ParseEnhanced(f.PrivateData); err != nil {
			return err
		}
	}
	return nil
}

// respond returns the Reply to a Request that checkRequest has passed, and the
// negotiated parameters. If the Initiator's IRD is too small for MinORD, the
// Reply rejects, and err says so.
func (c *Config) respond(req *Frame, pd []byte) (rep Frame, p Params, err error) {
	rep = Frame{Reply: true, Revision: req.Revision, CRC: c.CRC != CRCOff, Markers: c.Markers, PrivateData: pd}
	p = Params{
		Role: Responder, Revision: req.Revision,
		CRC:         req.CRC || rep.CRC, // "either … MUST be generated and checked by both": RFC 5044 §7.1.1
		SendMarkers: req.Markers, RecvMarkers: rep.Markers,
		IRD: c.IRD, ORD: c.ORD,
		PrivateData: slices.Clone(req.ULPData()),
	}
	if !req.Enhanced {
		return rep, p, nil
	}
	e, err := ParseEnhanced(req.PrivateData)
	if err != nil {
		return Frame{}, Params{}, err
	}
	rep.Enhanced, p.Enhanced = true, true
	p.PeerIRD, p.PeerORD = e.IRD, e.ORD
	answer := Enhanced{PeerToPeer: e.PeerToPeer}
	if e.PeerToPeer {
		p.PeerToPeer = true
		if p.RTR = e.RTR & c.rtr(); p.RTR == 0 {
			p.RTR = c.rtr() // "MUST set at least one … it supports": RFC 6581 §9.2
		}
		if c.IRD == 0 && p.RTR != RTRRead {
			p.RTR &^= RTRRead // it would have no slot in the queue
		}
		answer.RTR = p.RTR
	}
	err = c.respondDepths(e, &p, &answer)
	rep.Rejected = err != nil
	block, encErr := answer.AppendBinary(make([]byte, 0, EnhancedLen+len(pd)))
	if encErr != nil {
		return Frame{}, Params{}, encErr
	}
	rep.PrivateData = append(block, pd...)
	return rep, p, err
}

// respondDepths determines a Responder's IRD and ORD (RFC 6581 §9.1).
func (c *Config) respondDepths(e Enhanced, p *Params, answer *Enhanced) error {
	if e.ORD != DepthNotNegotiated {
		p.IRD = min(c.IRD, e.ORD)
	}
	if p.RTR&RTRRead != 0 {
		p.IRD = max(p.IRD, 1) // "can be set to 1", for the Read that is the RTR
	}
	answer.IRD = p.IRD
	if e.ORD == DepthNotNegotiated {
		answer.IRD = DepthNotNegotiated
	}
	if e.IRD == DepthNotNegotiated {
		answer.ORD = DepthNotNegotiated
		return nil
	}
	p.ORD = min(c.ORD, e.IRD) // "MUST set its ORD at most to the initiator IRD"
	answer.ORD = p.ORD
	if e.IRD < c.MinORD {
		answer.ORD = c.MinORD // "specify the required ORD in the MPA Reject Frame"
		return &Error{
			Code: CodeInsufficientIRD, Clause: "RFC 6581 §9.1",
			Reason: fmt.Sprintf("the Initiator takes %d reads at a time; this side needs %d", e.IRD, c.MinORD),
		}
	}
	return nil
}

// complete determines an Initiator's parameters from the Reply. A
// *RejectedError leaves the TCP connection as it is. An *Error with
// CodeInsufficientIRD or CodeNoMatchingRTR comes with parameters under which
// the Terminate that the peer must get can be sent; with other errors the
// connection must be closed.
func (c *Config) complete(req, rep *Frame) (p Params, err error) {
	switch {
	case !rep.Reply:
		return p, startupError("RFC 5044 §7.1.2", "a Request Frame came in place of a Reply: both sides are Initiators")
	case rep.Revision != req.Revision:
		err := startupError("RFC 5044 §7.1.1", "the Reply has revision %d, the Request had %d", rep.Revision, req.Revision)
		if rep.Revision == Revision1 {
			err.Err = errRevision1
		}
		return p, err
	case rep.Rejected:
		return p, rejection(rep)
	case rep.Enhanced != req.Enhanced:
		return p, startupError("RFC 6581 §10", "the Request had S=%t, the Reply has S=%t", req.Enhanced, rep.Enhanced)
	}
	p = Params{
		Role: Initiator, Revision: rep.Revision,
		CRC:         req.CRC || rep.CRC, // as for a Responder
		SendMarkers: rep.Markers, RecvMarkers: req.Markers,
		IRD: c.IRD, ORD: c.ORD,
		PrivateData: slices.Clone(rep.ULPData()),
	}
	var e Enhanced
	if rep.Enhanced {
		if e, err = ParseEnhanced(rep.PrivateData); err != nil {
			return Params{}, err
		}
		p.Enhanced, p.PeerIRD, p.PeerORD = true, e.IRD, e.ORD
	}
	switch {
	case !rep.Enhanced:
		return p, nil
	case e.PeerToPeer != c.PeerToPeer:
		return Params{}, startupError("RFC 6581 §9.2", "the Request had A=%t, the Reply has A=%t", c.PeerToPeer, e.PeerToPeer)
	}
	if err := c.completeDepths(e, &p); err != nil {
		return p, err
	}
	return p, c.completeRTR(e, &p)
}

// completeDepths determines an Initiator's IRD and ORD (RFC 6581 §9.1).
func (c *Config) completeDepths(e Enhanced, p *Params) error {
	if e.IRD != DepthNotNegotiated && !c.ULPDepths {
		p.ORD = min(c.ORD, e.IRD)
	}
	if e.ORD == DepthNotNegotiated || c.ULPDepths || e.ORD <= c.IRD {
		return nil
	}
	if e.ORD > c.MaxIRD {
		return &Error{
			Code: CodeInsufficientIRD, Clause: "RFC 6581 §9.1",
			Reason: fmt.Sprintf("the Responder wants %d reads at a time; this side can't take more than %d", e.ORD, max(c.IRD, c.MaxIRD)),
		}
	}
	p.IRD = e.ORD
	return nil
}

// completeRTR chooses the indication that an Initiator sends first. A Write
// needs least of either side; a Read needs a slot in the Responder's queue.
func (c *Config) completeRTR(e Enhanced, p *Params) error {
	if !c.PeerToPeer {
		return nil
	}
	p.PeerToPeer = true
	for _, kind := range []RTR{RTRWrite, RTRRead, RTRSend} {
		if e.RTR&c.rtr()&kind == 0 || kind == RTRRead && e.IRD == 0 {
			continue
		}
		p.RTR = kind
		return nil
	}
	return &Error{
		Code: CodeNoMatchingRTR, Clause: "RFC 6581 §9.2",
		Reason: fmt.Sprintf("the Responder takes %v, this side can send %v", e.RTR, c.rtr()),
	}
}

// A RejectedError reports that the Responder rejected the connection. The TCP
// connection is still open and belongs to the caller (RFC 5044 §7.1.2 rule 3),
// which can read all that follows the Reply.
type RejectedError struct {
	PrivateData []byte // the reason from the Responder's ULP
	Enhanced    bool
	IRD, ORD    uint16 // as the Responder sent them, if Enhanced
}

// rejection reports a Reply with R=1. It is lenient with the rest of the frame,
// as the connection is not to be used.
func rejection(rep *Frame) *RejectedError {
	r := &RejectedError{PrivateData: slices.Clone(rep.ULPData())}
	if rep.Enhanced {
		if e, err := ParseEnhanced(rep.PrivateData); err == nil {
			r.Enhanced, r.IRD, r.ORD = true, e.IRD, e.ORD
		}
	}
	return r
}

// Error says that the Responder rejected.
func (e *RejectedError) Error() string {
	s := "mpa: the Responder rejected the connection"
	if len(e.PrivateData) > 0 {
		s += fmt.Sprintf(" with %d octets of private data", len(e.PrivateData))
	}
	if e.Enhanced {
		s += fmt.Sprintf(", offering IRD %d and ORD %d", e.IRD, e.ORD)
	}
	return s
}
