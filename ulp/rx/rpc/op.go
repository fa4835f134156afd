package rpc

import (
	"context"
	"encoding/binary"
)

// Limits of an operation unless [Op.Limits] gives others, in bytes.
const (
	DefaultMaxArgs    = 64 << 10
	DefaultMaxResults = 4 << 20
)

// An Op is an operation of an interface, with arguments of type A and results of type R.
type Op[A, R any] struct {
	Opcode uint32
	Name   string

	maxArgs, maxResults int
	args                func(*A) Value
	results             func(*R) Value
}

// NewOp returns an operation.
func NewOp[A, R any, PA element[A], PR element[R]](opcode uint32, name string) *Op[A, R] {
	return &Op[A, R]{
		Opcode: opcode, Name: name, maxArgs: DefaultMaxArgs, maxResults: DefaultMaxResults,
		args:    func(a *A) Value { return PA(a) },
		results: func(r *R) Value { return PR(r) },
	}
}

// Limits sets how many bytes the arguments and the results may have, and returns o.
func (o *Op[A, R]) Limits(args, results int) *Op[A, R] {
	o.maxArgs, o.maxResults = args, results
	return o
}

// A Description is what is known of an operation without its types.
type Description struct {
	Opcode     uint32
	Name       string
	NewArgs    func() Value
	NewResults func() Value
}

// Describe describes the operation.
func (o *Op[A, R]) Describe() Description {
	return Description{
		Opcode: o.Opcode, Name: o.Name,
		NewArgs:    func() Value { return o.args(new(A)) },
		NewResults: func() Value { return o.results(new(R)) },
	}
}

// A Described is an operation of any types.
type Described interface{ Describe() Description }

// Describe describes operations.
func Describe(ops ...Described) []Description {
	all := make([]Description, len(ops))
	for i, o := range ops {
		all[i] = o.Describe()
	}
	return all
}

// Call makes a simple call and returns its results. The error is an *Error.
func (o *Op[A, R]) Call(ctx context.Context, c *Client, a *A) (R, error) {
	s, err := o.Start(ctx, c, a)
	if err != nil {
		var none R
		return none, err
	}
	return s.Finish()
}

// Start begins a split call: it sends the opcode and the arguments. The caller writes and
// reads the data, and ends the call with Finish or Close. The error is an *Error.
func (o *Op[A, R]) Start(ctx context.Context, c *Client, a *A) (*Stream[R], error) {
	k := codecs.Get().(*codec)
	defer k.free()
	var err error
	k.out = binary.BigEndian.AppendUint32(k.out[:0], o.Opcode)
	if k.out, err = k.encode(k.out, o.args(a)); err != nil {
		return nil, &Error{Op: c.name(o.Name), Code: ErrClientMarshal, Err: err}
	}
	call, err := c.Begin(ctx)
	if err != nil {
		return nil, c.Codes.failure(c.name(o.Name), err)
	}
	s := &Stream[R]{client: c, op: o.Name, most: o.maxResults, results: o.results, call: call}
	if _, err := s.Write(k.out); err != nil {
		s.Close() //nolint:errcheck // the error that matters is the one of Write
		return nil, err
	}
	return s, nil
}

// name is an operation's name in errors.
func (c *Client) name(op string) string {
	if c.Codes == nil {
		return op
	}
	return c.Codes.Interface + "." + op
}
