package rnic_test

import (
	"errors"
	"testing"
	"time"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestOpenRefusesWhatNoDeviceCanDo(t *testing.T) {
	for field, cfg := range map[string]rnic.Config{
		"configuration: CloseTimeout":                  {CloseTimeout: -1},
		"configuration: AnswerTimeout":                 {AnswerTimeout: -time.Second},
		"configuration: MaxSGE 33: say 1 to 32":        {MaxSGE: rnic.MaxSGE + 1},
		"configuration: MaxSGE -1":                     {MaxSGE: -1},
		"configuration: MaxInline":                     {MaxInline: rnic.MaxInline + 1},
		"configuration: MaxWR":                         {MaxWR: rnic.MaxWR + 1},
		"configuration: MaxCQE":                        {MaxCQE: rnic.MaxCQE + 1},
		"configuration: MaxIRD":                        {MaxIRD: rnic.MaxDepth + 1},
		"configuration: MaxORD":                        {MaxORD: rnic.MaxDepth + 1},
		"configuration: MPA: mpa: configuration: revi": {MPA: mpa.Config{Revision: 9}},
		"EMSS -5":             {MPA: mpa.Config{EMSS: -5}},
		"RequestTimeout -1ns": {MPA: mpa.Config{RequestTimeout: -1}},
		"Settle -1ns":         {MPA: mpa.Config{Settle: -1}},
	} {
		d, err := rnic.Open(cfg)
		wantRefused(t, field, err, nil, "open", field)
		if d != nil {
			t.Errorf("%s: a device was opened", field)
		}
	}
}

// The constants of the package are limits that a device can have.
func TestDeviceTakesTheHighestLimits(t *testing.T) {
	l := newLab(t, rnic.Config{
		MaxSGE: rnic.MaxSGE, MaxInline: rnic.MaxInline, MaxWR: rnic.MaxWR, MaxCQE: rnic.MaxCQE, MaxIRD: rnic.MaxDepth, MaxORD: rnic.MaxDepth,
	})
	if a := l.dev.Attr(); a.MaxSGE != rnic.MaxSGE || a.MaxInline != rnic.MaxInline || a.MaxWR != rnic.MaxWR ||
		a.MaxCQE != rnic.MaxCQE || a.MaxIRD != rnic.MaxDepth || a.MaxORD != rnic.MaxDepth {
		t.Errorf("%+v", a)
	}
}

// The MPA configuration of a device holds for its connections; one of a connection
// takes its place.
func TestConnectionUsesTheMPAConfigurationOfItsDevice(t *testing.T) {
	device := func(side string, c *rnic.Config) { c.MPA.Markers = side == "A" }
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		a, _ := p.A.QP.Params()
		b, _ := p.B.QP.Params()
		if !a.RecvMarkers || a.SendMarkers || !b.SendMarkers || b.RecvMarkers {
			t.Errorf("A wants markers, B does not: %+v, %+v", a, b)
		}
	}, rnictest.Options{Device: device})
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		if a, _ := p.A.QP.Params(); a.RecvMarkers || !a.SendMarkers {
			t.Errorf("the connection wants what its device does not: %+v", a)
		}
	}, rnictest.Options{Device: device, Conn: func(side string, c *rnic.ConnParam) {
		c.MPA = &mpa.Config{Markers: side == "B"}
	}})
}

// What the template of a connection can't say is not used, and none of it is
// refused.
func TestTemplateOfMPASaysWhatHoldsForAllConnections(t *testing.T) {
	for name, change := range map[string]rnictest.Options{
		"device": {Device: func(_ string, c *rnic.Config) {
			c.MPA = mpa.Config{Recorder: noRecorder{}, IRD: 1 << 15, ORD: 1 << 15, MaxIRD: 1 << 15, MinORD: 100, PrivateData: make([]byte, 9999)}
		}},
		"connection": {Conn: func(_ string, p *rnic.ConnParam) {
			p.MPA = &mpa.Config{Recorder: noRecorder{}, IRD: 1 << 15, ORD: 1 << 15, MaxIRD: 1 << 15, MinORD: 100, PrivateData: make([]byte, 9999)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				params, _ := p.B.QP.Params()
				if params.IRD != rnic.DefaultDepth || params.ORD != rnic.DefaultDepth || len(params.PrivateData) != 0 {
					t.Errorf("%+v", params)
				}
			}, change)
		})
	}
}

// A noRecorder must not be asked to record anything: its methods panic.
type noRecorder struct{ mpa.Recorder }

// A configuration that can't be is refused before anything is sent, and a request
// that was to be accepted with it can still be answered.
func TestConnectionWithAnImpossibleConfigurationIsNotBegun(t *testing.T) {
	inWorld(t, func(w *world) {
		s, b := w.side(), w.side()
		bad := rnic.ConnParam{MPA: &mpa.Config{Revision: 9}}
		l := w.listen(b)
		err := s.QP.Connect(w.Context(), l.Addr().String(), bad)
		wantRefused(w, "connect", err, nil, "revision 9")
		wantNoRequest(w, l)
		if c := b.Device.Counters(); c.Failed != 0 {
			w.Errorf("the listener was dialled: %+v", c)
		}
		h := w.ask(l)
		r := w.request(l)
		err = r.Accept(w.Context(), b.QP, bad)
		wantRefused(w, "accept", err, nil, "revision 9")
		if config := (*mpa.ConfigError)(nil); !errors.As(err, &config) {
			w.Errorf("%T", err)
		}
		if err := r.Accept(w.Context(), b.QP, rnic.ConnParam{}); err != nil {
			w.Error(err)
		}
		h.readFrame()
	})
}

func TestLimitsOfObjectsAreLoweredByConfiguration(t *testing.T) {
	l := newLab(t, rnic.Config{MaxSGE: 2, MaxInline: 8, MaxWR: 10, MaxCQE: 20, MaxIRD: 3, MaxORD: 4})
	a := l.dev.Attr()
	if a.MaxSGE != 2 || a.MaxInline != 8 || a.MaxWR != 10 || a.MaxCQE != 20 || a.MaxIRD != 3 || a.MaxORD != 4 {
		t.Errorf("%+v", a)
	}
	p, cq := l.domain(), l.cq(rnic.CQAttr{})
	if n := cq.Entries(); n != 20 {
		t.Errorf("a completion queue has %d entries by default", n)
	}
	if err := cq.Resize(20); err != nil {
		t.Error(err)
	}
	wantRefused(t, "resize", cq.Resize(21), nil, "1 to 20")
	_, err := l.dev.CreateCQ(rnic.CQAttr{Entries: 21})
	wantRefused(t, "CQ", err, nil, "1 to 20")
	for words, attr := range map[string]rnic.QPAttr{
		"MaxSendWR 11": {MaxSendWR: 11}, "MaxRecvWR 11": {MaxRecvWR: 11}, "MaxSGE 3": {MaxSGE: 3}, "MaxInline 9": {MaxInline: 9},
	} {
		attr.SendCQ, attr.RecvCQ = cq, cq
		_, err := p.CreateQP(attr)
		wantRefused(t, words, err, nil, words)
	}
	for words, attr := range map[string]rnic.SRQAttr{"MaxWR 11": {MaxWR: 11}, "MaxSGE 3": {MaxSGE: 3}} {
		_, err := p.CreateSRQ(attr)
		wantRefused(t, words, err, nil, words)
	}
	l.srq(p, rnic.SRQAttr{}) // the defaults are lowered too
	q := l.qp(p, rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
	if err := q.PostRecv(receives(1, 10)...); err != nil {
		t.Error(err)
	}
	wantRefused(t, "eleventh receive", q.PostRecv(receives(11, 1)...), rnic.ErrQueueFull)
}

func TestDepthsAreLoweredByConfiguration(t *testing.T) {
	for _, asked := range []int{0, rnic.MaxDepth} {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			if params, _ := p.A.QP.Params(); params.IRD != 3 || params.ORD != 4 {
				t.Errorf("asked for %d: IRD %d, ORD %d; want 3 and 4", asked, params.IRD, params.ORD)
			}
		}, rnictest.Options{
			Device: func(side string, c *rnic.Config) {
				if side == "A" {
					c.MaxIRD, c.MaxORD = 3, 4
				}
			},
			Conn: func(_ string, p *rnic.ConnParam) { p.IRD, p.ORD = asked, asked },
		})
	}
}
