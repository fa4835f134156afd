package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"urnic/ulp/rds/wire"
)

// An opPeer is a rawPeer for a node with RDMA operations. Both have told their generations,
// unless it is 0.
type opPeer struct {
	*rawPeer
	params Params
}

func newOpPeer(t *testing.T, generation uint32) *opPeer {
	t.Helper()
	params := Params{Generation: generation}
	r := &opPeer{newRawPeer(t, params, func(c *Config) { c.Carriers[0].Operations, c.Carriers[0].Fragment = true, 0 }), params}
	r.greet(0)
	return r
}

// greet has the peer tell what it has received, which its first segment on a link does.
func (r *opPeer) greet(ack uint64) {
	r.t.Helper()
	r.says(wire.Header{Ack: ack}, nil)
}

// operate sends a message with an operation, to port 5000.
func (r *opPeer) operate(s *Socket, data string, op Operation) *Operation {
	r.t.Helper()
	op.Arg = data
	if _, err := s.Send(r.now, Endpoint{there, 5000}, []byte(data), Options{Op: &op}); err != nil {
		r.t.Fatal(err)
	}
	r.do()
	return &op
}

func (r *opPeer) done(op *Operation, err error) {
	r.p.Done(r.now, r.link, op, err)
	r.do()
}

// lose loses the link, and makes another one.
func (r *opPeer) lose() {
	r.p.Down(r.now, r.link, ErrReplaced)
	r.do()
	r.sent = nil
	r.connect(r.params)
}

// want compares what the node has sent since the last call: operations in brackets,
// the data of messages, and kinds of others, without maps.
func (r *opPeer) want(want ...string) {
	r.t.Helper()
	var got []string
	for _, s := range r.sent {
		switch k := s.Header.Kind(); {
		case s.Op != nil:
			got = append(got, fmt.Sprintf("[%v]", s.Op.Arg))
		case k == wire.Data:
			got = append(got, string(s.Data))
		case k != wire.Map:
			got = append(got, k.String())
		}
	}
	r.sent = nil
	if !slices.Equal(got, want) {
		r.t.Errorf("sent: %s; want %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

// ended returns how an operation has ended, as Settled effects tell; "" if it has not.
func (r *opPeer) ended(op *Operation) (how string) {
	for _, e := range r.seen {
		if e.Kind != Settled || e.Op != op {
			continue
		}
		if how != "" {
			r.t.Errorf("%v has ended twice", op.Arg)
		}
		if how = "done"; e.Err != nil {
			how = e.Err.Error()
		}
	}
	return how
}

func (r *opPeer) wantEnded(op *Operation, want string) {
	r.t.Helper()
	if got := r.ended(op); got != want {
		r.t.Errorf("%v has ended as %q; want %q", op.Arg, got, want)
	}
}

var (
	read   = Operation{Answered: true}
	atomic = Operation{Answered: true, Once: true}
	write  = Operation{}

	errBad = errors.New("refused")
)
