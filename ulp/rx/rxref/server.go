package rxref

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/secure"
)

// Handler serves the operations.
func Handler() rx.Handler { return rx.Stream(newMux().Serve) }

func newMux() *rpc.Mux {
	m := rpc.NewMux(codes.Interface)
	opNull.Handle(m, func(context.Context, *rpc.Void) (rpc.Void, error) { return rpc.Void{}, nil })
	opEcho.Handle(m, func(_ context.Context, a *echoed) (echoed, error) { return *a, nil })
	opFail.Handle(m, func(_ context.Context, code *rpc.Int32) (rpc.Void, error) {
		if *code == 0 {
			return rpc.Void{}, nil
		}
		return rpc.Void{}, &rpc.Code{Number: int32(*code)}
	})
	opSlow.Handle(m, func(ctx context.Context, ms *rpc.Uint32) (rpc.Uint32, error) {
		return *ms, sleep(ctx, uint32(*ms))
	})
	opWhoAmI.Handle(m, func(ctx context.Context, _ *rpc.Void) (Identity, error) {
		return identity(rpc.Caller(ctx)), nil
	})
	opPut.HandleStream(m, timed(func(ctx context.Context, h *How, data io.ReadWriter, s *Seen) error {
		return h.take(ctx, data, s)
	}))
	opGet.HandleStream(m, timed(func(ctx context.Context, h *How, data io.ReadWriter, s *Seen) error {
		return h.give(ctx, data, s)
	}))
	opBoth.HandleStream(m, timed(func(ctx context.Context, h *How, data io.ReadWriter, s *Seen) error {
		if err := h.take(ctx, data, s); err != nil {
			return err
		}
		back := How{Length: h.Length} // it neither stops nor fails
		return back.give(ctx, data, new(Seen))
	}))
	return m
}

// timed returns the handler of a split call whose data move moves.
func timed(move func(ctx context.Context, h *How, data io.ReadWriter, s *Seen) error) func(context.Context, *How, io.ReadWriter) (Seen, error) {
	return func(ctx context.Context, h *How, data io.ReadWriter) (s Seen, err error) {
		begun := time.Now()
		err = move(ctx, h, data, &s)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = &rpc.Error{Code: rpc.ErrServerUnmarshal, Err: err}
		}
		s.Microseconds = uint32(time.Since(begun).Microseconds())
		return s, err
	}
}

// identity says who a caller is as the interface has it.
func identity(c secure.Caller) Identity {
	if c.Class == "" {
		return Identity{Level: -1}
	}
	i := Identity{Security: 2, KeyVersion: int32(c.Key), Cell: c.Realm}
	i.Name, i.Instance, _ = strings.Cut(c.Name, ".")
	for l, name := range []string{"clear", "auth", "crypt"} {
		if c.Level == name {
			i.Level = int32(l)
		}
	}
	if !c.Expires.IsZero() {
		i.Expires = uint32(c.Expires.Unix())
	}
	return i
}
