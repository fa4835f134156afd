package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"urnic/conformance/service"
)

// An operation is what a request can ask for.
type operation struct {
	parse func(raw json.RawMessage) (any, error)
	run   func(ctx context.Context, c *session, args any) (any, error)
}

// op returns an operation with arguments of type A.
func op[A any](run func(c *session, ctx context.Context, a *A) (any, error)) operation {
	return operation{
		parse: func(raw json.RawMessage) (any, error) {
			a := new(A)
			if len(raw) == 0 {
				return a, nil
			}
			return a, strict(raw, a)
		},
		run: func(ctx context.Context, c *session, args any) (any, error) { return run(c, ctx, args.(*A)) },
	}
}

// operations are all there are, by name.
var operations = map[string]operation{
	"hello":     op((*session).hello),
	"configure": op((*session).configure),
	"pd":        op((*session).allocPD),
	"close_pd":  op((*session).closePD),
	"event":     op((*session).event),
	"counters":  op((*session).counters),

	"listen":         op((*session).listen),
	"close_listener": op((*session).closeListener),
	"accepted":       op((*session).accepted),
	"answer":         op((*session).answerHeld),
	"connect":        op((*session).connect),
	"connected":      op((*session).connected),
	"qp":             op((*session).createQP),
	"state":          op((*session).state),
	"disconnect":     op((*session).disconnect),
	"terminate":      op((*session).terminate),
	"abort":          op((*session).abort),
	"reset":          op((*session).reset),
	"close":          op((*session).closeQP),

	"register":      op((*session).register),
	"deregister":    op((*session).deregister),
	"release":       op((*session).release),
	"memory_read":   op((*session).memoryRead),
	"memory_write":  op((*session).memoryWrite),
	"fast_register": op((*session).fastRegister),
	"window":        op((*session).window),
	"bind":          op((*session).bind),
	"close_window":  op((*session).closeWindow),
	"invalidate":    op((*session).invalidate),
	"tag":           op((*session).tag),

	"srq":        op((*session).createSRQ),
	"close_srq":  op((*session).closeSRQ),
	"recv":       op((*session).recv),
	"post":       op((*session).post),
	"completion": op((*session).completion),
	"arm":        op((*session).arm),
	"fired":      op((*session).fired),
}

// parseRequest parses a line.
func parseRequest(line []byte) (*service.Request, error) {
	r := new(service.Request)
	if err := strict(line, r); err != nil {
		return nil, err
	}
	if r.ID == 0 {
		return nil, bad("a request has an id that is not 0")
	}
	return r, nil
}

// parseArgs returns the operation that a request asks for, with its arguments.
func parseArgs(r *service.Request) (operation, any, error) {
	o, ok := operations[r.Op]
	if !ok {
		return o, nil, &service.Error{Code: service.CodeOp, Message: "there is no operation " + service.Shorten([]byte(r.Op))}
	}
	args, err := o.parse(r.Args)
	return o, args, err
}

// strict parses one JSON value that has nothing unknown in it: what the client
// means by that might matter.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad("%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("something follows the JSON value")
	}
	return nil
}
