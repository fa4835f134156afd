package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// protectionTags: STags that are nearly right. It is the whole of an STag that
// counts: index and key, which are 24 and 8 bits in most RNICs.
func protectionTags() []conformance.Case {
	var out []conformance.Case
	add := func(a access, name, what string, change func(stag uint32) uint32) {
		out = append(out, conformance.Case{
			Clause: "rfc5040-8.1.1-4", Name: fmt.Sprintf("%s-with-stag-%s", a.name, name), Also: []string{"rfc5041-8.3.1-4", "rfc5042-6.2.1-1"},
			Title: fmt.Sprintf("With %s, %s is refused and touches nothing", what, a.title),
			Needs: conformance.NeedBuffer,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.Buffer(64)
				a.ended(s, b, change(b.STag), b.TO, 8, what)
			},
		})
	}
	for _, a := range accesses[:2] {
		add(a, "0", "STag 0", func(uint32) uint32 { return 0 })
		add(a, "all-ones", "STag 0xffffffff", func(uint32) uint32 { return 0xFFFFFFFF })
		add(a, "key-plus-1", "the key of an STag that is one too high", func(stag uint32) uint32 { return stag&^0xFF | (stag+1)&0xFF })
		add(a, "key-minus-1", "the key of an STag that is one too low", func(stag uint32) uint32 { return stag&^0xFF | (stag-1)&0xFF })
		add(a, "key-inverted", "the key of an STag inverted", func(stag uint32) uint32 { return stag ^ 0xFF })
		for _, bit := range []int{9, 15, 16, 23, 31} {
			add(a, fmt.Sprintf("bit-%d-wrong", bit), fmt.Sprintf("bit %d of an STag inverted", bit), func(stag uint32) uint32 { return stag ^ 1<<bit })
		}
	}
	for bit := range 8 {
		add(writeAccess, fmt.Sprintf("bit-%d-wrong", bit), fmt.Sprintf("bit %d of an STag's key inverted", bit), func(stag uint32) uint32 { return stag ^ 1<<bit })
	}
	return append(out, conformance.Case{
		Clause: "rfc5040-8.1.1-4", Name: "another-key-behind-the-right-one", Also: []string{"rfc5041-8.3.1-4"},
		Title: "A Write with another key is refused and touches nothing, also when it comes at once with one that has the right key",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			right := wire.Tagged(wire.Write, b.STag, b.TO+8, bytes.Repeat([]byte{conformance.Fill}, 8))
			wrong := wire.Tagged(wire.Write, b.STag^0x10, b.TO, conformance.Pattern(8))
			both := [][]byte{s.Frame(right.Octets(), wire.Flaw{}), s.Frame(wrong.Octets(), wire.Flaw{})}
			t.Try(s.SendFrames(both, "two RDMA Writes at once", "the second one has another key"), "sending two Writes")
			s.AwaitTeardown()
			if b.MR != 0 {
				s.AwaitUntouched(b)
			}
		},
	}, conformance.Case{
		Clause: "rfc5040-8.1.1-4", Name: "all-other-keys", Also: []string{"rfc5041-8.3.1-4", "rfc5042-6.2.1-1"},
		Title: "With each of 32 wrong keys, every eighth of all, a Write is refused and touches nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			for i := range uint32(32) {
				key := b.STag + 8*i + 3 // which carries within the key only
				w := wire.Tagged(wire.Write, b.STag&^0xFF|key&0xFF, b.TO, conformance.Pattern(8))
				s.Post(alien(w, "another key"))
				s.AwaitTerminate(wire.DDPInvalidSTag)
				t.Try(s.Close(), "closing the connection")
				listenerGone(t)
				s = t.Open(conformance.Setup{})
			}
			s.AwaitUntouched(b)
		},
	})
}

// listenerGone has the target close the listener of the last connection, so that a
// case can have many connections.
func listenerGone(t *conformance.T) {
	if l, _ := t.Endpoint(); l != 0 {
		t.Try(t.Service().CloseListener(t.Context(), l), "closing the target's listener")
	}
}

// protectionBounds: the bytes before and behind a buffer.
func protectionBounds() []conformance.Case {
	outside := []string{"rfc5040-8.1.1-4", "rfc5041-8.3.1-4"}
	var out []conformance.Case
	for _, a := range accesses[:2] {
		for _, x := range []struct {
			name, what string
			off, n     func(length int) int
			atEnd      bool // it is the buffer's end that is gone beyond
		}{
			{"one-octet-before", "the octet before a buffer", at(-1), size(1), false},
			{"one-octet-behind", "the octet behind a buffer", length, size(1), true},
			{"across-the-beginning", "8 octets of which the first one is before a buffer", at(-1), size(8), false},
			{"across-the-end", "8 octets of which the last one is behind a buffer", func(n int) int { return n - 7 }, size(8), true},
			{"more-than-all", "a buffer and the octet behind it", at(0), func(n int) int { return n + 1 }, true},
			{"around-all", "the octet before a buffer, its first 64, and the one behind them", at(-1), func(n int) int { return n + 2 }, false},
			{"far-behind", "octets 1 GiB behind a buffer", at(1 << 30), size(8), true},
			{"far-before", "octets 1 GiB before a buffer", at(-1 << 30), size(8), false},
		} {
			out = append(out, conformance.Case{
				Clause: "rfc5042-6.2.1-1", Name: fmt.Sprintf("%s-%s", a.name, x.name), Also: outside,
				Title: fmt.Sprintf("For %s, %s is refused and touches nothing", x.what, a.title),
				Needs: conformance.NeedBuffer,
				Run: func(t *conformance.T) {
					s := t.Open(conformance.Setup{})
					b := s.BufferOf(conformance.BufferSpec{Length: 64, AtEnd: x.atEnd})
					a.ended(s, b, b.STag, b.TO+uint64(x.off(b.Length)), x.n(b.Length), x.what)
				},
			})
		}
		for _, x := range []struct {
			name, what string
			off        func(length int) int
			atEnd      bool
		}{
			{"first-octets", "the first octets of a buffer", at(0), false},
			{"last-octets", "the last octets of a buffer", func(n int) int { return n - 8 }, true},
		} {
			out = append(out, conformance.Case{
				Clause: "rfc5042-6.2.1-1", Name: fmt.Sprintf("%s-%s", a.name, x.name), Also: []string{"rfc5041-8.3-1"},
				Title: fmt.Sprintf("For %s, %s works: all of what was opened is open", x.what, a.title),
				Needs: conformance.NeedBuffer,
				Run: func(t *conformance.T) {
					s := t.Open(conformance.Setup{})
					b := s.BufferOf(conformance.BufferSpec{Length: 64, AtEnd: x.atEnd})
					a.works(t, s, b, x.off(b.Length))
				},
			})
		}
		// Wraps: the sum of TO and length is beyond 64 bits.
		out = append(out, conformance.Case{
			Clause: "rfc5042-6.2.1-1", Name: a.name + "-wraps-outside", Also: outside,
			Title: fmt.Sprintf("For 8 octets at TO 2^64-4, so that the TO wraps, %s is refused and touches nothing", a.title),
			Needs: conformance.NeedBuffer,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.Buffer(64)
				a.ended(s, b, b.STag, ^uint64(0)-3, 8, "the TO wraps")
			},
		}, conformance.Case{
			Clause: "rfc5042-6.2.1-1", Name: a.name + "-wraps-into-the-buffer", Also: outside,
			Title: fmt.Sprintf("For octets from the end of all TOs on, so many that the sum wraps into the buffer's range, %s is refused and touches nothing", a.title),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				if !t.Service().Hello().Features.ZeroBased {
					t.Skip("the target has no regions whose TOs count from 0")
				}
				s := t.Open(conformance.Setup{})
				b := s.BufferOf(conformance.BufferSpec{Length: 64, ZeroBased: true})
				a.refusedAt(s, b, b.STag, ^uint64(0)-7, 16, "TO and length wrap to octet 8 of the buffer", a.wrap)
			},
		}, conformance.Case{
			Clause: "rfc5042-6.2.1-1", Name: a.name + "-wraps-from-within", Also: outside,
			Title: fmt.Sprintf("For octets that begin in a buffer near the end of all TOs, so many that the TO wraps, %s is refused and touches nothing", a.title),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needBase(t)
				s := t.Open(conformance.Setup{})
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Base: ^uint64(0) - 64})
				a.works(t, s, b, 56)
				last := b.TO + 63 // whose neighbour is the last TO of all
				for _, seg := range a.segments(b.STag, last, 8) {
					s.Post(alien(seg, "the TO wraps"))
				}
				s.AwaitTerminate(a.wrap...)
				if a.right == service.RemoteRead {
					s.AwaitUntouched(b)
					return
				}
				s.AwaitContents(b, 56, conformance.Pattern(8))
			},
		})
	}
	return append(out, longRead, conformance.Case{
		Clause: "rfc5042-6.2.1-1", Name: "write-second-segment-beyond", Also: outside,
		Title: "A Write whose second segment goes beyond the buffer is refused there",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.BufferAtEnd(64)
			parts := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(b.Length+8)), b.Length)
			s.Post(parts[0], alien(parts[1], "it is behind the buffer"))
			s.AwaitTeardown()
		},
	}, conformance.Case{
		Clause: "rfc5041-8.3-1", Name: "write-beyond-a-part-of-memory", Also: append([]string{"rfc5042-6.2.1-1"}, outside...),
		Title: "Of memory of which a part was opened, the rest stays as it is when a Write goes beyond that part, on either side",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			needFast(t)
			for _, off := range []int{-4, 60} {
				s := t.Open(conformance.Setup{})
				b, _ := fastRegion(t, s, 192, remoteAccess)
				s.Post(alien(wire.Tagged(wire.Write, b.STag, b.TO+uint64(off), conformance.Pattern(8)), "it goes beyond the part that is open"))
				s.AwaitTerminate(wire.DDPBounds)
				allFill(t, b.MR, 0, 192)
			}
		},
	})
}

var longRead = conformance.Case{
	Clause: "rfc5042-6.2.1-1", Name: "read-of-all-there-can-be", Also: []string{"rfc5040-8.1.1-4", "rfc5041-8.3.1-4"},
	Title: "A Read of 2^32-1 octets of a small buffer is refused, and no octet of it comes",
	Needs: conformance.NeedBuffer,
	Run: func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		b := s.Buffer(64)
		s.Post(alien(conformance.ReadRequest(conformance.SinkSTag, 0, 0xFFFFFFFF, b.STag, b.TO), "the buffer is much shorter"))
		s.AwaitTeardown()
	},
}

func at(off int) func(int) int { return func(int) int { return off } }

func size(n int) func(int) int { return func(int) int { return n } }

func length(n int) int { return n }
