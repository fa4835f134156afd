package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/rpc"
)

// rpcPrivate holds what start-up carries (RFC 8797).
func rpcPrivate() []conformance.Case {
	return append(append(invalidation(), offers()...), reserved()...)
}

// A call with chunks, and the STags that are its own.
type lending struct {
	name string
	do   func(t *conformance.T, r *rpc.Requester, f *rpc.File) (rpc.Answer, []*rpc.Region)
}

func lendings() []lending {
	return []lending{
		{"write-chunk", func(t *conformance.T, r *rpc.Requester, f *rpc.File) (rpc.Answer, []*rpc.Region) {
			room := r.Room(2000)
			a, _ := readWith(t, r, f, 2000, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
			return a, []*rpc.Region{room}
		}},
		{"two-stags", func(t *conformance.T, r *rpc.Requester, f *rpc.File) (rpc.Answer, []*rpc.Region) {
			a, b := r.Room(1000), r.Room(1000)
			answer, _ := readWith(t, r, f, 2000, rpc.Chunks{Writes: []rpc.Chunk{{a.Segment(0, 1000), b.Segment(0, 1000)}}})
			return answer, []*rpc.Region{a, b}
		}},
		{"reply-chunk", func(t *conformance.T, r *rpc.Requester, f *rpc.File) (rpc.Answer, []*rpc.Region) {
			room := r.Room(4000)
			a, _ := readWith(t, r, f, 2000, rpc.Chunks{Reply: room.Whole()})
			return a, []*rpc.Region{room}
		}},
		{"read-chunk", func(_ *conformance.T, r *rpc.Requester, f *rpc.File) (rpc.Answer, []*rpc.Region) {
			lent := r.Lend(conformance.Pattern(2000))
			return writeFrom(r, f, 2000, lent.Whole(), false), []*rpc.Region{lent}
		}},
		{"no-chunk", func(_ *conformance.T, r *rpc.Requester, f *rpc.File) (rpc.Answer, []*rpc.Region) {
			return r.Do(r.Call(rpc.GetAttr, rpc.HandleArgs(f.Handle)), rpc.Chunks{}), nil
		}},
	}
}

func invalidation() []conformance.Case {
	var cases []conformance.Case
	for _, l := range lendings() {
		cases = append(cases, conformance.Case{
			Clause: "rfc8797-4.1-1", Name: l.name,
			Title: "If the reply comes by a Send with Invalidate, its STag is one of those of its call",
			Run: withFile("invalidates-"+l.name, 2000, invalidating, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				for range 3 { // those of earlier calls are lent no more
					a, lent := l.do(t, r, f)
					checkInvalidated(t, a, lent)
				}
			}),
		}, conformance.Case{
			Clause: "rfc8797-4.1-2", Name: l.name,
			Title: "To a requester that clears R, replies are Sends without Invalidate",
			Run: withFile("no-invalidate-"+l.name, 2000, modest, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				a, _ := l.do(t, r, f)
				checkPlain(t, a)
			}),
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc8797-4.1-1", Name: "calls-side-by-side",
		Title: "Of calls that are answered side by side, each reply invalidates, if any, an STag of its own call",
		Run: withFile("side-by-side", 2000, invalidating, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
			type waiting struct {
				h    rpc.Header
				lent *rpc.Region
			}
			all := map[uint32]waiting{}
			for range min(8, int(r.Credits)) {
				room := r.Room(2000)
				c := r.Call(rpc.Read, rpc.ReadArgs(f.Handle, 0, 2000))
				h := r.Header(c, rpc.Chunks{Writes: []rpc.Chunk{room.Whole()}})
				all[c.XID] = waiting{h, room}
				r.Send(h, c)
			}
			for len(all) > 0 {
				m := r.Await("a reply to each call")
				w, ok := all[m.XID]
				t.Check(ok, "a reply to each call", "%s", m.Header)
				delete(all, m.XID)
				checkInvalidated(t, r.Answered(m, w.h), []*rpc.Region{w.lent})
				w.lent.Over = true
			}
		}),
	}, conformance.Case{
		Clause: "rfc8797-4.1-2", Name: "target-without-r",
		Title: "A target that clears R itself replies by Sends without Invalidate, though the requester sets it",
		Run: withFile("target-without-r", 2000, invalidating, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
			if r.Theirs.Invalidates() {
				t.Skip("the target sets R")
			}
			a, _ := lendings()[0].do(t, r, f)
			checkPlain(t, a)
		}),
	})
	return ofServer(cases, conformance.NeedExport)
}

func checkInvalidated(t *conformance.T, a rpc.Answer, lent []*rpc.Region) {
	if !a.Invalidating() {
		return
	}
	t.Check(slices.ContainsFunc(lent, func(g *rpc.Region) bool { return g.STag == a.Invalidate }),
		"an STag of the call that is answered, or none", "Invalidate STag 0x%08x for XID 0x%08x", a.Invalidate, a.XID)
}

func checkPlain(t *conformance.T, a rpc.Answer) {
	t.Check(!a.Invalidating(), "a Send without Invalidate", "%s of STag 0x%08x", a.Opcode, a.Invalidate)
}

// offers holds private data that say nothing, so that both thresholds are 1024 bytes
// and nothing is invalidated.
func offers() []conformance.Case {
	large := rpc.Offer(largeReply, rpc.FlagR)
	other := large
	other.Version = 2
	swapped := append([]byte{0x18, 0x0E, 0xAB, 0xF6}, large.Octets()[4:]...)
	var cases []conformance.Case
	for _, o := range []struct {
		clause, name, title string
		private             []byte
	}{
		{"rfc8797-5.1-1", "none", "no private data", nil},
		{"rfc8797-5.1-1", "version-2", "a message of version 2", other.Octets()},
		{"rfc8797-5.1-1", "7-octets", "a message that lacks its last octet", large.Octets()[:7]},
		{"rfc8797-5.1-1", "4-octets", "the Format Identifier alone", large.Octets()[:4]},
		{"rfc8797-5.2-1", "garbage", "60 octets of something else", conformance.Pattern(60)},
		{"rfc8797-5.2-1", "200-octets", "200 octets of something else", conformance.Pattern(200)},
		{"rfc8797-5.2-1", "octets-swapped", "the Format Identifier with its octets the other way round", swapped},
		{"rfc8797-5.2-1", "zeros", "zeros", make([]byte, 8)},
	} {
		cases = append(cases, conformance.Case{
			Clause: o.clause, Name: o.name,
			Title: "Replies are Sends of 1024 octets at most, without Invalidate, to a requester that offers " + o.title,
			Run: withFile("offer-"+o.name, 2000, func() []byte { return o.private }, func(t *conformance.T, r *rpc.Requester, f *rpc.File) {
				checkDefaults(t, r, f)
			}),
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc8797-4-1", Name: "less-than-before",
		Title: "What a requester has offered does not hold for its next connection, on which it offers less",
		Run: func(t *conformance.T) {
			before := rpc.Connect(t, large.Octets())
			f := before.NewFile(fileName("less-than-before"), conformance.Pattern(2000))
			defer f.Remove()
			readWith(t, before, f, 2000, rpc.Chunks{Reply: before.Room(4000).Whole()})
			checkDefaults(t, server(t), f)
		},
	}, conformance.Case{
		Clause: "rfc8797-4-1", Name: "side-by-side",
		Title: "Of two connections that exist side by side, each has the settings of its own start-up",
		Run: func(t *conformance.T) {
			less, more := server(t), rpc.Connect(t, large.Octets())
			f := more.NewFile(fileName("settings-side-by-side"), conformance.Pattern(2000))
			defer f.Remove()
			readWith(t, more, f, 2000, rpc.Chunks{Reply: more.Room(4000).Whole()})
			checkDefaults(t, less, f)
		},
	})
	return ofServer(cases, conformance.NeedExport)
}

// checkDefaults has a reply that is too large for 1024 bytes sent, and makes sure that
// nobody takes more for granted.
func checkDefaults(t *conformance.T, r *rpc.Requester, f *rpc.File) {
	a, _ := readWith(t, r, f, 2000, rpc.Chunks{Reply: r.Room(4000).Whole()})
	t.Check(a.Length <= rpc.DefaultThreshold, "a Send of at most 1024 octets", "one of %d", a.Length)
	checkPlain(t, a)
}

// reserved holds the reserved bits.
func reserved() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc8797-4-2", Name: "reply",
			Title: "The reserved bits of the target's private data are zero",
			Run: func(t *conformance.T) {
				r := rpc.Connect(t, invalidating())
				if r.Theirs == nil {
					t.Skip("the target has %s", r.Theirs)
				}
				t.Check(r.Theirs.Flags&^rpc.FlagR == 0, "reserved bits of zero", "flags 0x%02x", r.Theirs.Flags)
			},
		},
	}
	cases = ofServer(cases, 0)
	for _, flags := range []uint8{0, rpc.FlagR} {
		cases = append(cases, ofServer([]conformance.Case{{
			Clause: "rfc8797-4-3", Name: fmt.Sprintf("flags-%02x", flags|0xFE),
			Title: "With all reserved bits set, the target invalidates STags if and only if it does without",
			Run: func(t *conformance.T) {
				r := rpc.Connect(t, rpc.Offer(rpc.DefaultThreshold, flags).Octets())
				f := r.NewFile(fileName(fmt.Sprintf("flags-%02x", flags)), conformance.Pattern(2000))
				defer f.Remove()
				without, _ := lendings()[0].do(t, r, f)
				all := rpc.Connect(t, rpc.Offer(rpc.DefaultThreshold, flags|0xFE).Octets())
				with, _ := lendings()[0].do(t, all, f)
				t.Check(with.Invalidating() == without.Invalidating(), without.Opcode.String(), "%s", with.Opcode)
			},
		}}, conformance.NeedExport)...)
	}
	return cases
}
