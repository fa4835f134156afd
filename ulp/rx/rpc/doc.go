// Package rpc is the RPC layer of Rx: operations with typed arguments and results on top of
// calls, which are byte streams (draft §8).
//
// A request is an opcode of four bytes, then the arguments in XDR (RFC 4506). The reply is
// the results in XDR. There is no status word: a call succeeds with its last packet, or
// fails with an abort that carries a code.
//
// An [Op] is an operation: its opcode, its name, and the types of its arguments and results.
// The same Op serves both sides:
//
//	var listMax = rpc.NewOp[rpc.Void, Maxima](510, "ListMax")
//
//	maxima, err := listMax.Call(ctx, client, &rpc.Void{})
//
//	mux := rpc.NewMux("pt")
//	listMax.Handle(mux, func(ctx context.Context, _ *rpc.Void) (Maxima, error) { ... })
//
// A type says how it is encoded and decoded in one method, which names its fields in order:
//
//	func (m *Maxima) XDR(x *rpc.XDR) {
//		x.Int32(&m.User)
//		x.Int32(&m.Group)
//	}
//
// # Split calls
//
// A streaming call ("split" in Rx's interface language) carries data of any length after the
// arguments, or before the results. [Op.Start] begins one as a [Stream], and [Op.HandleStream]
// serves one: both read and write the data directly on the call, and encode what is
// around it.
//
// # Errors
//
// [Codes] names the abort codes of an interface. Each is an error value that a handler
// returns and a client compares with errors.Is. The codes of this layer are -450 to -455:
// see [ErrOpcode] and the others.
//
// # What peers can do
//
// Each operation has limits for the bytes of its arguments and results, each string and
// array has a limit of its own, and memory is taken as bytes come. A server ignores bytes
// behind the arguments, as OpenAFS does; a client takes no byte behind the results.
//
// # Why there is no generator
//
// Rx's own interfaces are .xg files, from which rxgen makes stubs. The interfaces that are
// used here have some hundred operations. With one method for both directions and one Op for
// both sides, an operation costs a line, and a structure a line for each field: no more
// than its .xg text. A generator would add a parser, templates and generated files to
// replace that.
package rpc
