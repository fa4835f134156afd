package dir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	// PageLen is the length of a page.
	PageLen = 2048

	// MaxName is how many bytes a name has at most.
	MaxName = 255

	slotLen     = 32
	slots       = PageLen / slotLen
	maxPages    = 1023
	counted     = 128 // pages whose free slots are counted in the first page
	chains      = 128
	headerSlots = 13 // of the first page

	magic    = 1234
	atBitmap = 5
	atCounts = slotLen
	atChains = atCounts + counted
	atName   = 12
)

// Errors of this package.
var (
	ErrName    = errors.New("dir: a name has 1 to 255 bytes, and neither '/' nor a zero byte")
	ErrTwice   = errors.New("dir: two entries have one name")
	ErrFull    = errors.New("dir: too many entries")
	ErrCorrupt = errors.New("dir: not a directory")
)

// An Entry is a name and the file that it has.
type Entry struct {
	Name   string
	Vnode  uint32
	Unique uint32
}

// ValidName reports whether an entry may have a name.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && strings.IndexByte(name, 0) < 0 && strings.IndexByte(name, '/') < 0
}

// slotsOf is how many slots an entry with a name takes.
func slotsOf(name string) int { return 1 + (len(name)+1+15)/slotLen }

// hash is the hash chain of a name.
func hash(name string) int {
	var h uint32
	for i := range len(name) {
		h = 173*h + uint32(name[i])
	}
	chain := int(h % chains)
	if chain != 0 && h >= 1<<31 {
		return chains - chain
	}
	return chain
}

// Encode returns the directory with these entries, "." and ".." among them.
func Encode(entries []Entry) ([]byte, error) {
	b := &builder{names: make(map[string]bool, len(entries))}
	b.addPage()
	for i := range chains * 2 / slotLen {
		b.use(i + 1 + counted/slotLen)
	}
	for i := range counted {
		b.p[atCounts+i] = slots
		if i > 0 && i <= counted/slotLen {
			b.use(i)
		}
	}
	b.p[4] = slots - headerSlots
	b.p[atCounts] = slots - headerSlots
	for _, e := range entries {
		if err := b.add(e); err != nil {
			return nil, fmt.Errorf("%w: %.300q", err, e.Name)
		}
	}
	binary.BigEndian.PutUint16(b.p, uint16(len(b.p)/PageLen))
	return b.p, nil
}

// A builder is a directory that is being made.
type builder struct {
	p     []byte
	names map[string]bool
	free  []int // the first slot of each page behind which all are free
}

func (b *builder) addPage() {
	page := len(b.p)
	b.p = append(b.p, make([]byte, PageLen)...)
	binary.BigEndian.PutUint16(b.p[page+2:], magic)
	b.p[page+4] = slots - 1
	b.p[page+atBitmap] = 1
	first := 1
	if page == 0 {
		first = headerSlots
	} else if n := page / PageLen; n < counted {
		b.p[atCounts+n] = slots - 1
	}
	b.free = append(b.free, first)
}

// use marks a slot, counted from the first page's first.
func (b *builder) use(slot int) {
	b.p[slot/slots*PageLen+atBitmap+slot%slots/8] |= 1 << (slot % 8)
}

// add puts an entry into the first page that has room.
func (b *builder) add(e Entry) error {
	switch {
	case !ValidName(e.Name):
		return ErrName
	case b.names[e.Name]:
		return ErrTwice
	}
	n := slotsOf(e.Name)
	page := 0
	for page < len(b.free) && b.free[page]+n > slots {
		page++
	}
	if page == maxPages {
		return ErrFull
	}
	if page == len(b.free) {
		b.addPage()
	}
	b.names[e.Name] = true
	slot := page*slots + b.free[page]
	b.free[page] += n
	for i := range n {
		b.use(slot + i)
	}
	if page < counted {
		b.p[atCounts+page] -= byte(n)
	}
	chain := b.p[atChains+2*hash(e.Name):]
	p := b.p[slot*slotLen:]
	p[0] = 1
	copy(p[2:4], chain)
	binary.BigEndian.PutUint32(p[4:], e.Vnode)
	binary.BigEndian.PutUint32(p[8:], e.Unique)
	copy(p[atName:], e.Name)
	binary.BigEndian.PutUint16(chain, uint16(slot))
	return nil
}

// pages returns the number of pages of a directory, after a look at their headers.
func pages(p []byte) (int, error) {
	n := len(p) / PageLen
	if n == 0 || n > maxPages || len(p)%PageLen != 0 {
		return 0, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(p))
	}
	for i := range n {
		if binary.BigEndian.Uint16(p[i*PageLen+2:]) != magic {
			return 0, fmt.Errorf("%w: page %d has no header", ErrCorrupt, i)
		}
	}
	return n, nil
}

// used reports whether a slot is in use.
func used(p []byte, slot int) bool {
	return p[slot/slots*PageLen+atBitmap+slot%slots/8]>>(slot%8)&1 != 0
}

// entry returns the entry at a slot and how many slots it takes.
func entry(p []byte, slot int) (Entry, int, error) {
	b := p[slot*slotLen : (slot/slots+1)*PageLen]
	end := bytes.IndexByte(b[atName:min(len(b), atName+MaxName+1)], 0)
	if b[0] != 1 || end <= 0 {
		return Entry{}, 0, fmt.Errorf("%w: slot %d is no entry", ErrCorrupt, slot)
	}
	e := Entry{string(b[atName : atName+end]), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])}
	return e, slotsOf(e.Name), nil
}

// Decode returns the entries of a directory in the order of their places, "." and ".." among
// them.
func Decode(p []byte) ([]Entry, error) {
	n, err := pages(p)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for slot := headerSlots; slot < n*slots; {
		if slot%slots == 0 || !used(p, slot) {
			slot++
			continue
		}
		e, taken, err := entry(p, slot)
		if err != nil {
			return nil, err
		}
		for i := range taken {
			if slot+i >= n*slots || !used(p, slot+i) {
				return nil, fmt.Errorf("%w: %.300q takes free slots", ErrCorrupt, e.Name)
			}
		}
		all = append(all, e)
		slot += taken
	}
	return all, nil
}

// Lookup returns the entry with a name, which it finds by its hash chain.
func Lookup(p []byte, name string) (Entry, bool, error) {
	n, err := pages(p)
	if err != nil {
		return Entry{}, false, err
	}
	slot := int(binary.BigEndian.Uint16(p[atChains+2*hash(name):]))
	for range n * slots { // no chain is longer
		if slot == 0 {
			return Entry{}, false, nil
		}
		if slot >= n*slots || slot < headerSlots || slot%slots == 0 {
			break
		}
		e, _, err := entry(p, slot)
		if err != nil {
			return Entry{}, false, err
		}
		if e.Name == name {
			return e, true, nil
		}
		slot = int(binary.BigEndian.Uint16(p[slot*slotLen+2:]))
	}
	return Entry{}, false, fmt.Errorf("%w: the hash chain of %.300q leads astray", ErrCorrupt, name)
}
