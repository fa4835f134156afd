package cases

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// needWindow skips a case unless the target has windows of a type.
func needWindow(t *conformance.T, kind int) {
	if !slices.Contains(t.Service().Hello().Features.Windows, kind) {
		t.Skip("the target has no memory windows of type %d", kind)
	}
}

// A window is a memory window of the target.
type window struct {
	num int   // in the test service
	key uint8 // for the next binding, if it is of type 2: another than the last one
}

// newWindow makes a memory window.
func newWindow(t *conformance.T, kind int) *window {
	w, err := t.Service().Window(t.Context(), service.WindowArgs{Type: kind})
	t.Try(err, "making a memory window")
	return &window{num: w.MW, key: uint8(windowSTag(t, w.MW)) + 1}
}

// windowSTag returns the STag of a window, valid or not.
func windowSTag(t *conformance.T, num int) uint32 {
	tag, err := t.Service().Tag(t.Context(), service.TagArgs{MW: num})
	t.Try(err, "asking for the STag of a memory window")
	return uint32(tag.STag)
}

// bindWindow binds a window to n bytes of a region. What it returns can't be looked
// into: the region can.
func bindWindow(t *conformance.T, s *conformance.Stream, mw *window, region *conformance.Buffer, off, n int, access ...string) *conformance.Buffer {
	s.Hello()
	w, err := t.Service().Bind(t.Context(), service.BindArgs{
		QP: s.QP, MW: mw.num, MR: region.MR, Offset: uint64(off), Length: uint64(n), Access: access, Key: mw.key, Timeout: int(t.Timeout().Milliseconds()),
	})
	t.Try(err, "binding a memory window")
	mw.key++
	t.Note("the target binds a window to octets %d to %d: STag 0x%08x, TO 0x%x", off, off+n, uint32(w.STag), uint64(w.TO))
	return &conformance.Buffer{STag: uint32(w.STag), TO: uint64(w.TO), Length: n}
}

// windowRegion opens 64 bytes to windows, and to nobody else.
func windowRegion(s *conformance.Stream) *conformance.Buffer {
	return s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite, service.BindWindow}})
}

// protectionWindows: what a window opens.
func protectionWindows() []conformance.Case {
	var out []conformance.Case
	for kind := 1; kind <= 2; kind++ {
		add := func(a access, clause, name, title string, also []string, run func(t *conformance.T, s *conformance.Stream)) {
			out = append(out, conformance.Case{
				Clause: clause, Name: fmt.Sprintf("%s-window-%d-%s", a.name, kind, name), Also: also, Needs: conformance.NeedService,
				Title: fmt.Sprintf(title, a.title, kind),
				Run: func(t *conformance.T) {
					needWindow(t, kind)
					run(t, a.open(t))
				},
			})
		}
		for _, a := range accesses {
			add(a, "rfc5040-8.1.1-6", "that-grants-it", "Through a window that grants it, %s works: type %d", []string{"rfc5041-8.3.1-6", "rfc5041-8.3-1"},
				func(t *conformance.T, s *conformance.Stream) {
					r := windowRegion(s)
					a.works(t, s, bindWindow(t, s, newWindow(t, kind), r, 16, 32, a.right), 24)
				})
			other := writeAccess.right
			if a.right == other {
				other = readAccess.right
			}
			add(a, "rfc5040-8.1.1-6", "that-grants-another-right", "Through a window that grants another right, %s is refused and touches nothing: type %d", []string{"rfc5041-8.3.1-6"},
				func(t *conformance.T, s *conformance.Stream) {
					r := windowRegion(s)
					w := bindWindow(t, s, newWindow(t, kind), r, 16, 32, other)
					a.refusedAt(s, r, w.STag, w.TO, 8, "the window doesn't grant that", a.rights)
				})
			for _, x := range []struct {
				name, what string
				off        int
			}{
				{"before-it", "before", -8},
				{"behind-it", "behind", 32},
			} {
				add(a, "rfc5040-8.1.1-4", x.name, "For octets "+x.what+" a window, but within its region, %s is refused and touches nothing: type %d",
					[]string{"rfc5041-8.3.1-4", "rfc5042-6.2.1-1", "rfc5041-8.3-1"},
					func(t *conformance.T, s *conformance.Stream) {
						r := windowRegion(s)
						w := bindWindow(t, s, newWindow(t, kind), r, 16, 32, a.right)
						a.refusedAt(s, r, w.STag, w.TO+uint64(x.off), 8, "outside the window", a.bounds)
					})
			}
			add(a, "rfc5040-8.1.1-2", "from-another-domain", "Through a window of another protection domain, %s is refused and touches nothing: type %d",
				[]string{"rfc5041-8.3.1-2", "rfc5042-6.1.1-2"},
				func(t *conformance.T, s *conformance.Stream) {
					stranger := t.Open(conformance.Setup{QP: service.QPAttr{PD: anotherDomain(t)}})
					r := windowRegion(s)
					w := bindWindow(t, s, newWindow(t, kind), r, 0, 64, a.right)
					a.refusedAt(stranger, r, w.STag, w.TO, 8, "a window of another protection domain", a.foreign)
				})
		}
		for _, a := range accesses[:2] {
			for _, x := range []struct {
				name, what string
				off        int
			}{
				{"one-octet-before-it", "the octet before", -1},
				{"one-octet-behind-it", "the octet behind", 32},
			} {
				add(a, "rfc5042-6.2.1-1", x.name, "For "+x.what+" a window, within its region, %s is refused and touches nothing: type %d",
					[]string{"rfc5040-8.1.1-4", "rfc5041-8.3.1-4"},
					func(t *conformance.T, s *conformance.Stream) {
						r := windowRegion(s)
						w := bindWindow(t, s, newWindow(t, kind), r, 16, 32, a.right)
						a.refusedAt(s, r, w.STag, w.TO+uint64(x.off), 1, "an octet outside the window", a.bounds)
					})
			}
			add(a, "rfc5041-8.3-2", "not-bound", "Through a window that is not bound, %s is refused: type %d", []string{"rfc5040-8.1.1-5"},
				func(t *conformance.T, s *conformance.Stream) {
					mw := newWindow(t, kind)
					r := windowRegion(s)
					a.refusedAt(s, r, windowSTag(t, mw.num), r.TO, 8, "the window is not bound", a.invalid)
				})
		}
	}
	for _, a := range accesses {
		out = append(out, conformance.Case{
			Clause: "rfc5042-6.1.1-3", Name: a.name + "-window-2-of-another-stream", Also: []string{"rfc5040-8.1.1-3", "rfc5041-8.3.1-3"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("Through a window of type 2 that another stream has bound, %s is refused and touches nothing, though the protection domain is the same", a.title),
			Run: func(t *conformance.T) {
				needWindow(t, 2)
				s := a.open(t)
				other := t.Open(conformance.Setup{})
				r := windowRegion(s)
				w := bindWindow(t, other, newWindow(t, 2), r, 0, 64, a.right)
				a.refusedAt(s, r, w.STag, w.TO, 8, "another stream has bound the window", a.foreign)
				a.works(t, other, w, 0)
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc5041-8.2-3", Name: "window-1-of-the-domain", Needs: conformance.NeedService,
		Title: "A window of type 1 belongs to the protection domain: another stream of that writes through it",
		Run: func(t *conformance.T) {
			needWindow(t, 1)
			s, other := t.Open(conformance.Setup{}), t.Open(conformance.Setup{})
			r := windowRegion(s)
			writeAccess.works(t, s, bindWindow(t, other, newWindow(t, 1), r, 0, 64, service.RemoteWrite), 8)
			s.AwaitContents(r, 8, conformance.Pattern(8))
		},
	})
}

// protectionRebound: windows that were bound elsewhere, or are not bound any more.
func protectionRebound() []conformance.Case {
	also := []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7"}
	var out []conformance.Case
	for _, a := range accesses {
		out = append(out, conformance.Case{
			Clause: "rfc5042-6.2.2-1", Name: a.name + "-window-1-bound-anew", Also: also, Needs: conformance.NeedService,
			Title: fmt.Sprintf("After a window of type 1 was bound anew, %s with its STag before is refused and touches nothing", a.title),
			Run: func(t *conformance.T) {
				needWindow(t, 1)
				s := a.open(t)
				r, mw := windowRegion(s), newWindow(t, 1)
				old := bindWindow(t, s, mw, r, 0, 32, a.right)
				w := bindWindow(t, s, mw, r, 0, 64, a.right)
				t.Check(w.STag != old.STag, "another STag", "0x%08x again", w.STag)
				a.refusedAt(s, r, old.STag, old.TO, 8, "the window was bound anew", a.invalid)
			},
		}, conformance.Case{
			Clause: "rfc5040-8.1.1-5", Name: a.name + "-window-1-bound-to-less", Also: []string{"rfc5041-8.3-1", "rfc5042-6.2.1-1"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("After a window of type 1 was bound anew to other octets, %s works there, and not where it was bound before", a.title),
			Run: func(t *conformance.T) {
				needWindow(t, 1)
				s := a.open(t)
				r, mw := windowRegion(s), newWindow(t, 1)
				old := bindWindow(t, s, mw, r, 0, 32, a.right)
				w := bindWindow(t, s, mw, r, 32, 16, a.right)
				a.works(t, s, w, 0)
				s.Post(alien(a.segments(w.STag, old.TO, 8)[0], "the window was bound there before"))
				s.AwaitTerminate(a.bounds...)
				allFill(t, r.MR, 0, 32)
			},
		}, conformance.Case{
			Clause: "rfc5040-8.1.1-7", Name: a.name + "-window-1-unbound", Also: []string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1", "rfc5041-8.3-2"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("After a window of type 1 was unbound, %s with its STag is refused and touches nothing", a.title),
			Run: func(t *conformance.T) {
				needWindow(t, 1)
				s := a.open(t)
				r, mw := windowRegion(s), newWindow(t, 1)
				w := bindWindow(t, s, mw, r, 0, 64, a.right)
				_, err := t.Service().Bind(t.Context(), service.BindArgs{QP: s.QP, MW: mw.num, Timeout: int(t.Timeout().Milliseconds())})
				t.Try(err, "unbinding a memory window")
				a.refusedAt(s, r, w.STag, w.TO, 8, "the window is not bound any more", a.invalid)
			},
		}, conformance.Case{
			Clause: "rfc5040-8.1.1-7", Name: a.name + "-window-2-invalidated", Also: []string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1", "rfc5041-8.3-2"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("After the target's program has invalidated a window of type 2, %s with its STag is refused and touches nothing", a.title),
			Run: func(t *conformance.T) {
				needWindow(t, 2)
				s := a.open(t)
				r := windowRegion(s)
				w := bindWindow(t, s, newWindow(t, 2), r, 0, 64, a.right)
				invalidated(t, s, w.STag)
				a.refusedAt(s, r, w.STag, w.TO, 8, "the window was invalidated", a.invalid)
			},
		}, conformance.Case{
			Clause: "rfc5042-6.2.2-1", Name: a.name + "-window-2-with-the-key-before", Also: also, Needs: conformance.NeedService,
			Title: fmt.Sprintf("After a window of type 2 was invalidated and bound anew with another key, %s with the key before is refused, and works with the new one", a.title),
			Run: func(t *conformance.T) {
				needWindow(t, 2)
				s := a.open(t)
				r, mw := windowRegion(s), newWindow(t, 2)
				old := bindWindow(t, s, mw, r, 0, 32, a.right)
				invalidated(t, s, old.STag)
				w := bindWindow(t, s, mw, r, 0, 64, a.right)
				a.works(t, s, w, 56)
				s.Post(alien(a.segments(old.STag, old.TO, 8)[0], "the key is the one before"))
				s.AwaitTerminate(a.invalid...)
				allFill(t, r.MR, 0, 32)
			},
		}, conformance.Case{
			Clause: "rfc5040-8.1.1-7", Name: a.name + "-window-2-invalidated-by-the-peer", Also: []string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("After a Send with Invalidate has invalidated a window of type 2, %s with its STag is refused and touches nothing", a.title),
			Run: func(t *conformance.T) {
				needWindow(t, 2)
				needInvalidate(t)
				s := a.open(t)
				r := windowRegion(s)
				w := bindWindow(t, s, newWindow(t, 2), r, 0, 64, a.right, service.RemoteInvalidate)
				invalidate(s, w.STag, "")
				s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
				a.refusedAt(s, r, w.STag, w.TO, 8, "the window was invalidated", a.invalid)
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc5040-8.1.1-7", Name: "window-given-up", Also: []string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1"}, Needs: conformance.NeedService,
		Title: "After a window was given up, a Write with its STag is refused and touches nothing",
		Run: func(t *conformance.T) {
			needWindow(t, 1)
			s := t.Open(conformance.Setup{})
			r, mw := windowRegion(s), newWindow(t, 1)
			w := bindWindow(t, s, mw, r, 0, 64, service.RemoteWrite)
			t.Try(t.Service().CloseWindow(t.Context(), mw.num), "giving up a memory window")
			writeAccess.refusedAt(s, r, w.STag, w.TO, 8, "the window is gone", []wire.Code{wire.DDPInvalidSTag})
		},
	})
}

// protectionBinding: bindings and registrations that would open more than the
// program has.
func protectionBinding() []conformance.Case {
	refuses := func(name, title, what string, run func(t *conformance.T, c *service.Client, s *conformance.Stream) func() error) conformance.Case {
		return conformance.Case{
			Clause: "rfc5042-7.3-1", Name: name, Also: []string{"rfc5041-8.3.2-5", "rfc5041-8.3.2-1"}, Title: title, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				err := asked(t, s, run(t, t.Service(), s))
				t.Check(err != nil, "that the target refuses "+what, "that it does it")
				if code := service.CodeOf(err); code == "" || code == service.CodeTimeout {
					t.Try(err, "asking for "+what)
				}
			},
		}
	}
	bind := func(t *conformance.T, c *service.Client, s *conformance.Stream, r *conformance.Buffer, off int) func() error {
		mw := newWindow(t, 1).num
		return func() error {
			_, err := c.Bind(t.Context(), service.BindArgs{
				QP: s.QP, MW: mw, MR: r.MR, Offset: uint64(off), Length: 64, Access: []string{service.RemoteWrite}, Timeout: int(t.Timeout().Milliseconds()),
			})
			return err
		}
	}
	return []conformance.Case{
		refuses("window-beyond-its-region", "A window that would reach beyond its region is not bound", "a window of 64 octets from octet 8 of 64 on",
			func(t *conformance.T, c *service.Client, s *conformance.Stream) func() error {
				needWindow(t, 1)
				return bind(t, c, s, windowRegion(s), 8)
			}),
		refuses("window-to-a-region-that-wants-none", "A window is not bound to a region that does not allow windows", "a window to a region that does not allow it",
			func(t *conformance.T, c *service.Client, s *conformance.Stream) func() error {
				needWindow(t, 1)
				return bind(t, c, s, s.Buffer(64), 0)
			}),
		refuses("window-that-writes-what-its-region-may-not", "A window for writes is not bound to a region that may not be written to even locally", "a window for writes to a region for reads",
			func(t *conformance.T, c *service.Client, s *conformance.Stream) func() error {
				needWindow(t, 1)
				return bind(t, c, s, s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.BindWindow}}), 0)
			}),
		refuses("window-to-another-domains-region", "A window is not bound to a region of another protection domain", "a window to a region of another protection domain",
			func(t *conformance.T, c *service.Client, s *conformance.Stream) func() error {
				needWindow(t, 1)
				r := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite, service.BindWindow}, PD: anotherDomain(t)})
				return bind(t, c, s, r, 0)
			}),
		refuses("remote-write-without-local-write", "Memory that its program may not write to is not opened for remote writes", "remote writes to memory without local ones",
			func(t *conformance.T, c *service.Client, _ *conformance.Stream) func() error {
				return func() error {
					_, err := c.Register(t.Context(), service.RegisterArgs{Length: 64, Access: []string{service.RemoteWrite}})
					return err
				}
			}),
	}
}

// asked asks the test service for something that may end the stream, which then has
// to be closed before the answer comes.
func asked(t *conformance.T, s *conformance.Stream, ask func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- ask() }()
	for deadline := time.Now().Add(t.Timeout()); time.Now().Before(deadline); {
		select {
		case err := <-answer:
			return err
		default:
		}
		if _, err := s.Next(time.Millisecond); !errors.Is(err, wire.ErrSilence) {
			break // it has ended
		}
	}
	t.Try(s.Close(), "closing the connection")
	return <-answer
}
