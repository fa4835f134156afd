package vol

import "encoding/binary"

// Tags and constants of a dump. Each part begins with a tag; a volume's fields are tags with
// values of lengths that the tags imply.
const (
	tagHeader = 1
	tagVolume = 2
	tagEnd    = 4

	dumpMagic   = 0xB3A11322
	dumpVersion = 1
	endMagic    = 0x3A214B6E
)

// emptyDump is the dump of a volume into which nothing was restored: its header alone.
func emptyDump(i *Info) []byte {
	be := binary.BigEndian
	p := be.AppendUint32([]byte{tagHeader}, dumpMagic)
	p = be.AppendUint32(p, dumpVersion)
	p = be.AppendUint32(append(p, 'v'), i.ID)
	p = append(append(append(p, 'n'), i.Name...), 0)
	p = be.AppendUint16(append(p, 't'), 2) // from and to
	p = be.AppendUint32(be.AppendUint32(p, 0), uint32(i.Updated))
	p = append(p, tagVolume)
	p = be.AppendUint32(append(p, 'i'), i.ID)
	p = be.AppendUint32(append(p, 'v'), 1)
	p = append(append(append(p, 'n'), i.Name...), 0)
	p = append(p, 's', 1, 'b', 1)
	p = append(p, 't', byte(i.Type))
	p = be.AppendUint32(append(p, 'p'), i.ParentID)
	p = be.AppendUint32(append(p, 'q'), uint32(i.Quota))
	p = be.AppendUint32(append(p, 'C'), uint32(i.Created))
	p = be.AppendUint32(append(p, 'U'), uint32(i.Updated))
	return be.AppendUint32(append(p, tagEnd), endMagic)
}
