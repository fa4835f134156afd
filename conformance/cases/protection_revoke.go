package cases

import (
	"bytes"
	"fmt"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// needFast skips a case unless regions can be made valid and invalid.
func needFast(t *conformance.T) {
	if !t.Service().Hello().Features.FastRegistration {
		t.Skip("the target has no fast registration")
	}
}

// fastRegion makes a region for n bytes, and makes the first 64 of it valid. It
// returns the key that was used last, too.
func fastRegion(t *conformance.T, s *conformance.Stream, n int, access []string) (*conformance.Buffer, uint8) {
	s.Hello()
	r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: uint64(n), Fast: true, Fill: conformance.Fill})
	t.Try(err, "making a region of the target")
	key := uint8(r.STag) + 1
	return fastRegister(t, s, r.MR, 64, access, key), key
}

// fastRegister makes the first bytes of a region valid, under a key.
func fastRegister(t *conformance.T, s *conformance.Stream, mr, valid int, access []string, key uint8) *conformance.Buffer {
	r, err := t.Service().FastRegister(t.Context(), service.FastRegisterArgs{
		QP: s.QP, MR: mr, Length: uint64(valid), Access: access, Key: key, Timeout: int(t.Timeout().Milliseconds()),
	})
	t.Try(err, "making a region of the target valid")
	t.Note("the target makes %d octets valid under STag 0x%08x", valid, uint32(r.STag))
	return &conformance.Buffer{STag: uint32(r.STag), TO: uint64(r.TO), Length: valid, MR: mr}
}

// invalidated has the target's program invalidate an STag.
func invalidated(t *conformance.T, s *conformance.Stream, stag uint32) {
	t.Note("the target invalidates STag 0x%08x", stag)
	err := t.Service().Invalidate(t.Context(), service.InvalidateArgs{QP: s.QP, STag: service.STag(stag), Timeout: int(t.Timeout().Milliseconds())})
	t.Try(err, "invalidating an STag of the target")
}

// allFill makes sure that n bytes of a region still hold what they did at
// first.
func allFill(t *conformance.T, mr, off, n int) {
	got, err := t.Service().MemoryRead(t.Context(), mr, uint64(off), n)
	t.Try(err, "looking into the target's memory")
	for i, octet := range got {
		t.Check(octet == conformance.Fill, "that no octet changes", "octet %d is 0x%02x", off+i, octet)
	}
}

// protectionRevoked: memory that is not open any more.
func protectionRevoked() []conformance.Case {
	after := []string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1"}
	const gone = "the STag is not valid any more"
	var out []conformance.Case
	for _, a := range accesses {
		if a.right != service.RemoteAtomic {
			out = append(out, conformance.Case{
				Clause: "rfc5040-8.1.1-7", Name: a.name + "-after-deregistration", Also: append([]string{"rfc5040-8.1.1-5", "rfc5041-8.3.1-5", "rfc5041-8.3-2"}, after...),
				Title: fmt.Sprintf("After the deregistration of a region in which it worked, %s is refused and touches nothing", a.title),
				Needs: conformance.NeedService,
				Run: func(t *conformance.T) {
					s := t.Open(conformance.Setup{})
					b := s.Buffer(64)
					for _, seg := range a.segments(b.STag, b.TO+56, 8) {
						s.Post(seg)
					}
					if a.right == service.RemoteRead {
						s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 8)
					} else {
						s.AwaitAlive()
					}
					deregister(t, b)
					for _, seg := range a.segments(b.STag, b.TO, 8) {
						s.Post(alien(seg, gone))
					}
					s.AwaitTerminate(a.invalid...)
					allFill(t, b.MR, 0, 56)
				},
			})
		}
		out = append(out, conformance.Case{
			Clause: "rfc5040-8.1.1-7", Name: a.name + "-after-invalidation", Also: append([]string{"rfc5041-8.3-2", "rfc5040-8.1.1-5"}, after...),
			Title: fmt.Sprintf("After the target's program has invalidated an STag, %s with it is refused and touches nothing", a.title),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needFast(t)
				s := a.open(t)
				b, _ := fastRegion(t, s, 64, a.granted())
				invalidated(t, s, b.STag)
				for _, seg := range a.segments(b.STag, b.TO, 8) {
					s.Post(alien(seg, gone))
				}
				s.AwaitTerminate(a.invalid...)
				allFill(t, b.MR, 0, 64)
			},
		}, conformance.Case{
			Clause: "rfc5040-8.1.1-7", Name: a.name + "-after-a-peers-invalidation", Also: after,
			Title: fmt.Sprintf("After a Send with Invalidate has invalidated an STag, %s with it is refused and touches nothing", a.title),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needFast(t)
				needInvalidate(t)
				s := a.open(t)
				b, _ := fastRegion(t, s, 64, append(a.granted(), service.RemoteInvalidate))
				invalidate(s, b.STag, "")
				c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
				t.Check(uint32(c.Invalidated) == b.STag, fmt.Sprintf("that the receive tells of STag 0x%08x", b.STag), "0x%08x", uint32(c.Invalidated))
				for _, seg := range a.segments(b.STag, b.TO, 8) {
					s.Post(alien(seg, gone))
				}
				s.AwaitTerminate(a.invalid...)
				allFill(t, b.MR, 0, 64)
			},
		}, conformance.Case{
			Clause: "rfc5042-6.2.2-1", Name: a.name + "-with-the-key-before", Also: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
			Title: fmt.Sprintf("After a region was made valid anew under another key, %s with the STag before is refused and touches nothing", a.title),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needFast(t)
				s := a.open(t)
				old, key := fastRegion(t, s, 64, a.granted())
				invalidated(t, s, old.STag)
				b := fastRegister(t, s, old.MR, 64, a.granted(), key+1)
				t.Check(b.STag != old.STag, "another STag", "0x%08x again", b.STag)
				for _, seg := range a.segments(old.STag, old.TO, 8) {
					s.Post(alien(seg, "the key is the one before"))
				}
				s.AwaitTerminate(a.invalid...)
				allFill(t, b.MR, 0, 64)
			},
		}, conformance.Case{
			Clause: "rfc5040-8.1.1-5", Name: a.name + "-with-the-new-key", Also: []string{"rfc5041-8.3.1-5", "rfc5041-8.3-1"},
			Title: fmt.Sprintf("After a region was made valid anew under another key, for fewer octets, %s works within those, and not behind them", a.title),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needFast(t)
				s := a.open(t)
				old, key := fastRegion(t, s, 64, a.granted())
				invalidated(t, s, old.STag)
				b := fastRegister(t, s, old.MR, 32, a.granted(), key+1)
				a.works(t, s, b, 24)
				for _, seg := range a.segments(b.STag, b.TO+32, 8) {
					s.Post(alien(seg, "it was open before, and is not now"))
				}
				s.AwaitTerminate(a.bounds...)
				allFill(t, b.MR, 32, 32)
			},
		})
		if a.right == service.RemoteAtomic {
			continue
		}
		out = append(out, conformance.Case{
			Clause: "rfc5040-8.1.1-6", Name: a.name + "-after-the-right-was-taken-back", Also: []string{"rfc5041-8.3.1-6"},
			Title: fmt.Sprintf("After a region was made valid anew with fewer rights, %s is refused and touches nothing", a.title),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needFast(t)
				s := t.Open(conformance.Setup{})
				old, key := fastRegion(t, s, 64, remoteAccess)
				invalidated(t, s, old.STag)
				less := readAccess.granted()
				if a.right == service.RemoteRead {
					less = writeAccess.granted()
				}
				b := fastRegister(t, s, old.MR, 64, less, key+1)
				for _, seg := range a.segments(b.STag, b.TO, 8) {
					s.Post(alien(seg, "the right was taken back"))
				}
				s.AwaitTerminate(a.rights...)
				allFill(t, b.MR, 0, 64)
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc5041-8.3-2", Name: "not-valid-yet", Also: []string{"rfc5040-8.1.1-5"},
		Title: "A Write with the STag of a region that was not made valid yet is refused and touches nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			needFast(t)
			s := t.Open(conformance.Setup{})
			r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: 64, Fast: true, Fill: conformance.Fill})
			t.Try(err, "making a region of the target")
			s.Post(alien(wire.Tagged(wire.Write, uint32(r.STag), uint64(r.TO), conformance.Pattern(8)), "the region is not valid"))
			s.AwaitTerminate(wire.DDPInvalidSTag)
			allFill(t, r.MR, 0, 64)
		},
	})
}

// protectionInFlight: memory that is taken back while a message is outstanding.
var protectionInFlight = []conformance.Case{
	{
		Clause: "rfc5042-6.2.2-1", Name: "deregistered-within-a-write", Also: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Title: "Of a Write in two segments with the deregistration between them, the second one is refused and touches nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			revokedWithin(t, s, b, func() { deregister(t, b) })
		},
	},
	{
		Clause: "rfc5042-6.2.2-1", Name: "invalidated-within-a-write", Also: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Title: "Of a Write in two segments with the invalidation of the STag between them, the second one is refused and touches nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			needFast(t)
			s := t.Open(conformance.Setup{})
			b, _ := fastRegion(t, s, 64, remoteAccess)
			revokedWithin(t, s, b, func() { invalidated(t, s, b.STag) })
		},
	},
	{
		Clause: "rfc5042-6.2.2-1", Name: "new-key-within-a-write", Also: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Title: "Of a Write in two segments with a new key for the region between them, the second one is refused and touches nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			needFast(t)
			s := t.Open(conformance.Setup{})
			b, key := fastRegion(t, s, 64, remoteAccess)
			revokedWithin(t, s, b, func() {
				invalidated(t, s, b.STag)
				fastRegister(t, s, b.MR, 64, remoteAccess, key+1)
			})
		},
	},
	{
		Clause: "rfc5042-6.2.2-1", Name: "deregistered-within-a-read-response", Also: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Title: "Of a Read Response to the target in two segments with the deregistration of the sink between them, the second one touches nothing, and the Read fails",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
			s.Posts(service.Post{Op: service.OpRead, Remote: there(0), SGL: []service.Piece{{MR: b.MR, Length: 64}}})
			r, err := wire.ParseReadHeader(s.Await(wire.ReadRequest).Payload)
			t.Try(err, "taking the Read Request apart")
			parts := conformance.Segments(wire.Tagged(wire.ReadResponse, r.SinkSTag, r.SinkTO, conformance.Pattern(64)), 32)
			s.Post(parts[0])
			placed(t, b, conformance.Pattern(32))
			deregister(t, b)
			s.Post(alien(parts[1], "the sink was deregistered"))
			s.AwaitTeardown()
			allFill(t, b.MR, 32, 32)
			readFails(t, s)
		},
	},
}

// revokedWithin sends a Write of 64 bytes in two segments, with something between
// them that takes the memory back.
func revokedWithin(t *conformance.T, s *conformance.Stream, b *conformance.Buffer, revoke func()) {
	data := conformance.Pattern(64)
	parts := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, data), 32)
	s.Post(parts[0])
	placed(t, b, data[:32])
	revoke()
	s.Post(alien(parts[1], "the STag is not valid any more"))
	s.AwaitTerminate(wire.DDPInvalidSTag)
	allFill(t, b.MR, 32, 32)
}

// placed waits until the target has placed data at the beginning of a buffer.
// It may also wait for the rest of the message: after a while the case
// continues.
func placed(t *conformance.T, b *conformance.Buffer, data []byte) {
	for deadline := time.Now().Add(t.Quiet()); time.Now().Before(deadline); {
		got, err := t.Service().MemoryRead(t.Context(), b.MR, 0, len(data))
		t.Try(err, "looking into the target's memory")
		if bytes.Equal(got, data) {
			return
		}
	}
	t.Note("the target has not placed the first segment yet")
}
