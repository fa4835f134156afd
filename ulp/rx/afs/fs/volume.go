package fs

import (
	"slices"
	"strings"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/dir"
)

const (
	anonymous   = 32766 // the ID of nobody in particular
	dirMode     = 0o755
	fileMode    = 0o644
	linkMode    = 0o777
	maxFiles    = 1 << 20 // of a volume
	defaultMost = 64 << 20
	kib         = 1024
)

// Root is the place of a volume's root directory.
const Root = 1

// A VolumeConfig describes a volume.
type VolumeConfig struct {
	ID       uint32
	Name     string
	ReadOnly bool
	Rights   uint32 // of anybody: ReadOnly if it is 0
	MaxBytes int64  // of its files together: 64 MiB if it is 0
}

// A volume is files in memory. Its Server's lock guards it.
type volume struct {
	VolumeConfig
	files    map[uint32]*vnode
	nextFile uint32 // even
	nextDir  uint32 // odd
	unique   uint32
	used     int64
	made     afs.Time
}

// A vnode is a file, a directory or a symbolic link. Its data and pages do not change, but are
// replaced.
type vnode struct {
	fid       afs.FID
	status    Status
	data      []byte
	entries   []dir.Entry
	pages     []byte // of a directory; nil if it has changed
	lockUntil afs.Time
}

func newVolume(c VolumeConfig, now afs.Time) *volume {
	if c.Rights == 0 {
		c.Rights = ReadOnly
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMost
	}
	v := &volume{VolumeConfig: c, files: make(map[uint32]*vnode), nextFile: 2, nextDir: Root, made: now}
	root := v.add(Directory, dirMode, now)
	root.entries = []dir.Entry{{Name: ".", Vnode: Root, Unique: 1}, {Name: "..", Vnode: Root, Unique: 1}}
	root.setParent(root)
	root.status.Links = 2
	return v
}

// add makes a file without a name.
func (v *volume) add(typ, mode uint32, now afs.Time) *vnode {
	next := &v.nextFile
	if typ == Directory {
		next = &v.nextDir
	}
	v.unique++
	n := &vnode{
		fid:    afs.FID{Volume: v.ID, Vnode: *next, Unique: v.unique},
		status: Status{Type: typ, Links: 1, DataVersion: 1, Author: anonymous, Owner: anonymous, Mode: mode, Modified: now, ServerModified: now},
	}
	*next += 2
	v.files[n.fid.Vnode] = n
	return n
}

func (n *vnode) setParent(d *vnode) {
	n.status.ParentVnode, n.status.ParentUnique = d.fid.Vnode, d.fid.Unique
}

// content is what a client reads of the file.
func (n *vnode) content() []byte {
	if n.status.Type != Directory {
		return n.data
	}
	if n.pages == nil {
		p, err := dir.Encode(n.entries)
		if err != nil {
			return nil // not reached: link has encoded them before
		}
		n.pages = p
		n.status.Length = uint64(len(p))
	}
	return n.pages
}

// find returns the place of a name in a directory, or -1.
func (n *vnode) find(name string) int {
	return slices.IndexFunc(n.entries, func(e dir.Entry) bool { return e.Name == name })
}

// link gives a file a name.
func (n *vnode) link(name string, f *vnode, now afs.Time) error {
	if n.find(name) >= 0 {
		return ErrExists
	}
	if !dir.ValidName(name) {
		return ErrInvalid
	}
	entries := append(slices.Clip(n.entries), dir.Entry{Name: name, Vnode: f.fid.Vnode, Unique: f.fid.Unique})
	p, err := dir.Encode(entries)
	if err != nil {
		return ErrTooLarge
	}
	n.entries, n.pages = entries, p
	n.changed(now)
	if f.status.Type == Directory {
		n.status.Links++
	}
	return nil
}

// unlink removes a name.
func (n *vnode) unlink(at int, now afs.Time) {
	if (afs.FID{Vnode: n.entries[at].Vnode}).IsDir() {
		n.status.Links--
	}
	n.entries = slices.Delete(slices.Clone(n.entries), at, at+1)
	n.pages = nil
	n.changed(now)
}

// changed notes that the content is another one.
func (n *vnode) changed(now afs.Time) {
	n.status.DataVersion++
	n.status.Modified, n.status.ServerModified = now, now
	n.status.Length = uint64(len(n.content()))
}

// at returns the directory at a path, and makes those that are missing.
func (v *volume) at(path []string, now afs.Time) (*vnode, error) {
	d := v.files[Root]
	for _, name := range path {
		if name == "" {
			continue
		}
		i := d.find(name)
		if i < 0 {
			made, err := v.makeDir(d, name, dirMode, now)
			if err != nil {
				return nil, err
			}
			d = made
			continue
		}
		if d = v.files[d.entries[i].Vnode]; d == nil || d.status.Type != Directory {
			return nil, ErrNotDirectory
		}
	}
	return d, nil
}

// makeDir makes a directory.
func (v *volume) makeDir(d *vnode, name string, mode uint32, now afs.Time) (*vnode, error) {
	n, err := v.makeFile(d, name, Directory, mode, nil, now)
	if err != nil {
		return nil, err
	}
	n.entries = []dir.Entry{
		{Name: ".", Vnode: n.fid.Vnode, Unique: n.fid.Unique},
		{Name: "..", Vnode: d.fid.Vnode, Unique: d.fid.Unique},
	}
	n.status.Links, n.status.Length = 2, uint64(len(n.content()))
	return n, nil
}

// makeFile makes a file of any type.
func (v *volume) makeFile(d *vnode, name string, typ, mode uint32, data []byte, now afs.Time) (*vnode, error) {
	if len(v.files) >= maxFiles || v.used+int64(len(data)) > v.MaxBytes {
		return nil, afs.ErrDiskFull
	}
	n := v.add(typ, mode, now)
	if err := d.link(name, n, now); err != nil {
		delete(v.files, n.fid.Vnode)
		return nil, err
	}
	n.setParent(d)
	n.data, n.status.Length = data, uint64(len(data))
	v.used += int64(len(data))
	return n, nil
}

// remove forgets a file that has no name any more.
func (v *volume) remove(n *vnode) {
	v.used -= int64(len(n.data))
	delete(v.files, n.fid.Vnode)
}

// status is the volume's state.
func (v *volume) volumeStatus() VolumeStatus {
	s := VolumeStatus{
		ID: v.ID, ParentID: v.ID, Online: 1, InService: 1, Blessed: 1, Type: 1, Quota: int32(min(v.MaxBytes/kib, 1<<31-1)), Used: int32(v.used / kib),
		PartitionFree: int32(min((v.MaxBytes-v.used)/kib, 1<<31-1)), PartitionSize: int32(min(v.MaxBytes/kib, 1<<31-1)), Name: v.Name,
	}
	if v.ReadOnly {
		s.Type = 0
	}
	return s
}

// split is a path as names, and the last one.
func split(path string) (dirs []string, name string) {
	all := strings.Split(strings.Trim(path, "/"), "/")
	return all[:len(all)-1], all[len(all)-1]
}
