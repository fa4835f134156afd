// Package stag implements steering tags: the names under which memory is
// opened to local and remote access (RFC 5041 §8, RFC 5040 §8.1).
//
// A [Table] belongs to one device. An [Entry] of it is a memory region or a
// memory window; while it is valid, [Table.Acquire] turns an STag, a range and
// the rights wanted into a [Pin] on the memory:
//
//	pin, err := table.Acquire(s, scope, stag.RemoteWrite, to, n)
//	if err != nil { … }       // *AccessError: which check failed
//	copy(pin.Bytes(), payload)
//	pin.Release()
//
// The checks run in the order of RFC 5041 §7.1: the STag is valid, it belongs
// to the protection domain or the one stream that uses it, it grants the
// rights, the range is inside it, the offset does not wrap. They take no lock.
// Invalidation and deregistration wait for the pins that are held at that
// moment. When they return, nothing accesses the memory through that STag any
// more (RFC 5042 §6.2.2).
//
// STags are hard to guess: the 24-bit index is drawn at random over the whole
// range (RFC 5040 §8.1.1 rule 8), and so is the key of a registered region.
// Programs choose the keys of fast-registered regions and of type 2 windows.
//
// The package knows no wire format. The caller decides what a failed check
// means to the peer.
package stag
