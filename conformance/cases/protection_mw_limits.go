package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// tryBind asks for a binding that the target has to refuse, and returns its answer.
func tryBind(t *conformance.T, s *conformance.Stream, args service.BindArgs) error {
	args.QP, args.Timeout = s.QP, int(t.Timeout().Milliseconds())
	return asked(t, s, func() error {
		_, err := t.Service().Bind(t.Context(), args)
		return err
	})
}

// refusedBinding makes sure that the answer to a binding is a refusal.
func refusedBinding(t *conformance.T, err error, what string) {
	t.Check(err != nil, "that the target refuses "+what, "that it does it")
	if code := service.CodeOf(err); code == "" || code == service.CodeTimeout {
		t.Try(err, "asking for "+what)
	}
}

// protectionWindowLimits: how far a binding may go, to the byte and to the right.
func protectionWindowLimits() []conformance.Case {
	var out []conformance.Case
	for _, x := range []struct {
		name, what string
		off        uint64
	}{
		{"window-one-byte-beyond-its-region", "one byte beyond its region", 1},
		{"window-before-its-region", "8 bytes before its region", ^uint64(7)},
		{"window-behind-its-region", "only behind its region", 64},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5042-7.3-1", Name: x.name, Also: []string{"rfc5041-8.3.2-5", "rfc5041-8.3.2-1"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A window of 64 bytes that would reach %s of 64 is not bound", x.what),
			Run: func(t *conformance.T) {
				needWindow(t, 1)
				s := t.Open(conformance.Setup{})
				s.Hello()
				r := windowRegion(s)
				refusedBinding(t, tryBind(t, s, service.BindArgs{
					MW: newWindow(t, 1).num, MR: r.MR, Offset: x.off, Length: 64, Access: []string{service.RemoteWrite},
				}), "a window that reaches "+x.what)
			},
		})
	}
	out = append(out, conformance.Case{
		Clause: "rfc5042-7.3-1", Name: "window-for-atomics-on-what-its-region-may-not", Also: []string{"rfc5041-8.3.2-5", "rfc5041-8.3.2-1"}, Needs: conformance.NeedService,
		Title: "A window for atomics is not bound to a region that may not be written to even locally",
		Run: func(t *conformance.T) {
			needWindow(t, 1)
			needAtomics(t)
			s := t.Open(conformance.Setup{})
			s.Hello()
			r := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.BindWindow}})
			refusedBinding(t, tryBind(t, s, service.BindArgs{
				MW: newWindow(t, 1).num, MR: r.MR, Length: 64, Access: []string{service.RemoteAtomic},
			}), "a window for atomics on a region for reads")
		},
	})
	for kind := 1; kind <= 2; kind++ {
		out = append(out, conformance.Case{
			Clause: "rfc5040-8.1.1-5", Name: fmt.Sprintf("window-%d-opens-what-it-was-bound-to", kind), Also: []string{"rfc5041-8.3-1", "rfc5041-8.3.1-5"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("Through a window of type %d that is bound to bytes 16 to 48 of a region, a Write goes to those, and nowhere else", kind),
			Run: func(t *conformance.T) {
				needWindow(t, kind)
				s := t.Open(conformance.Setup{})
				r := windowRegion(s)
				w := bindWindow(t, s, newWindow(t, kind), r, 16, 32, service.RemoteWrite)
				data := conformance.Pattern(32)
				s.Post(wire.Tagged(wire.Write, w.STag, w.TO, data))
				s.AwaitAlive()
				holds(s, r, 16, data)
			},
		})
		out = append(out, conformance.Case{
			Clause: "rfc5040-8.1.1-6", Name: fmt.Sprintf("window-%d-with-fewer-rights-than-its-region", kind), Also: []string{"rfc5041-8.3.1-6", "rfc5042-6.3.5-1"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("Through a window of type %d for reads, on a region that is open for writes too, a Read works, and a Write is refused and touches nothing", kind),
			Run: func(t *conformance.T) {
				needWindow(t, kind)
				s := t.Open(conformance.Setup{})
				r := s.BufferOf(conformance.BufferSpec{Length: 64, Access: append([]string{service.BindWindow}, remoteAccess...)})
				w := bindWindow(t, s, newWindow(t, kind), r, 0, 64, service.RemoteRead)
				readAccess.works(t, s, w, 8)
				writeAccess.refusedAt(s, r, w.STag, w.TO, 8, "the window is for reads", writeAccess.rights)
			},
		})
	}
	return out
}

// protectionWindowOwners: what windows depend on, and when they may be bound.
var protectionWindowOwners = []conformance.Case{
	{
		Clause: "rfc5041-8.3-2", Name: "window-2-bound-while-valid", Also: []string{"rfc5040-8.1.1-5"}, Needs: conformance.NeedService,
		Title: "A window of type 2 that is bound is not bound anew before it was invalidated",
		Run: func(t *conformance.T) {
			needWindow(t, 2)
			s := t.Open(conformance.Setup{})
			r, mw := windowRegion(s), newWindow(t, 2)
			bindWindow(t, s, mw, r, 0, 32, service.RemoteWrite)
			refusedBinding(t, tryBind(t, s, service.BindArgs{
				MW: mw.num, MR: r.MR, Length: 64, Access: []string{service.RemoteWrite}, Key: mw.key,
			}), "to bind a window of type 2 that is bound")
		},
	},
	{
		Clause: "rfc5042-6.2.2-1", Name: "window-2-bound-with-its-last-key", Also: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7"}, Needs: conformance.NeedService,
		Title: "A window of type 2 that was invalidated is not bound anew with the key that it had: that would make the revoked STag valid",
		Run: func(t *conformance.T) {
			needWindow(t, 2)
			s := t.Open(conformance.Setup{})
			r, mw := windowRegion(s), newWindow(t, 2)
			key := mw.key
			w := bindWindow(t, s, mw, r, 0, 32, service.RemoteWrite)
			invalidated(t, s, w.STag)
			refusedBinding(t, tryBind(t, s, service.BindArgs{
				MW: mw.num, MR: r.MR, Length: 64, Access: []string{service.RemoteWrite}, Key: key,
			}), "to bind a window of type 2 with the key that it had")
		},
	},
	{
		Clause: "rfc5040-8.1.1-7", Name: "region-deregistered-under-a-window", Also: []string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1"}, Needs: conformance.NeedService,
		Title: "A region with a window on it is not deregistered, or the window opens nothing from then on",
		Run: func(t *conformance.T) {
			needWindow(t, 1)
			s := t.Open(conformance.Setup{})
			r := windowRegion(s)
			w := bindWindow(t, s, newWindow(t, 1), r, 0, 64, service.RemoteWrite)
			if err := t.Service().Deregister(t.Context(), r.MR); err != nil {
				stillBound(t, err, "deregistering a region with a window")
				return
			}
			s.Post(alien(wire.Tagged(wire.Write, w.STag, w.TO, conformance.Pattern(8)), "the window's region is gone"))
			s.AwaitTerminate(wire.DDPInvalidSTag)
			allFill(t, r.MR, 0, 64)
		},
	},
	{
		Clause: "rfc5040-8.1.1-7", Name: "region-invalidated-under-a-window", Also: []string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1"}, Needs: conformance.NeedService,
		Title: "A region with a window on it is not invalidated, or the window opens nothing from then on",
		Run: func(t *conformance.T) {
			needWindow(t, 1)
			needFast(t)
			s, other := t.Open(conformance.Setup{}), t.Open(conformance.Setup{})
			r, _ := fastRegion(t, s, 64, []string{service.LocalWrite, service.BindWindow})
			w := bindWindow(t, other, newWindow(t, 1), r, 0, 64, service.RemoteWrite)
			err := asked(t, s, func() error {
				return t.Service().Invalidate(t.Context(), service.InvalidateArgs{QP: s.QP, STag: service.STag(r.STag), Timeout: int(t.Timeout().Milliseconds())})
			})
			if err != nil {
				stillBound(t, err, "invalidating a region with a window")
				return
			}
			other.Post(alien(wire.Tagged(wire.Write, w.STag, w.TO, conformance.Pattern(8)), "the window's region is not valid"))
			other.AwaitTerminate(wire.DDPInvalidSTag)
			allFill(t, r.MR, 0, 64)
		},
	},
}

// stillBound makes sure that an error is a refusal, and not one of the test service.
func stillBound(t *conformance.T, err error, what string) {
	if code := service.CodeOf(err); code == "" || code == service.CodeTimeout {
		t.Try(err, what)
	}
}
