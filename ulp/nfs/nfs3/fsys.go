package nfs3

import "urnic/ulp/oncrpc/xdr"

// FSStatRes are the results of FSSTAT (RFC 1813 §3.3.18): bytes, and files.
type FSStatRes struct {
	Status                            Status
	Attr                              PostOpAttr
	TotalBytes, FreeBytes, AvailBytes uint64 // these and all else with OK
	TotalFiles, FreeFiles, AvailFiles uint64
	Invariant                         uint32 // seconds for which this will not change
}

// Encode writes the results.
func (r *FSStatRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.encode(e); r.Status != OK {
		return
	}
	for _, v := range [...]uint64{r.TotalBytes, r.FreeBytes, r.AvailBytes, r.TotalFiles, r.FreeFiles, r.AvailFiles} {
		e.Uint64(v)
	}
	e.Uint32(r.Invariant)
}

// Decode reads the results.
func (r *FSStatRes) Decode(d *xdr.Decoder) error {
	*r = FSStatRes{Status: Status(d.Uint32())}
	if r.Attr.decode(d); r.Status == OK {
		r.TotalBytes, r.FreeBytes, r.AvailBytes = d.Uint64(), d.Uint64(), d.Uint64()
		r.TotalFiles, r.FreeFiles, r.AvailFiles = d.Uint64(), d.Uint64(), d.Uint64()
		r.Invariant = d.Uint32()
	}
	return d.Err()
}

// What a filesystem can do (§3.3.19).
const (
	FSFLink        = 0x01
	FSFSymlink     = 0x02
	FSFHomogeneous = 0x08 // PATHCONF says the same of all files
	FSFCanSetTime  = 0x10
)

// FSInfoRes are the results of FSINFO (§3.3.19). Sizes are in bytes: the largest, the
// preferred one, and what they should be a multiple of.
type FSInfoRes struct {
	Status                             Status
	Attr                               PostOpAttr
	ReadMax, ReadPref, ReadMultiple    uint32 // these and all else with OK
	WriteMax, WritePref, WriteMultiple uint32
	DirPref                            uint32
	MaxFileSize                        uint64
	TimeDelta                          Time
	Properties                         uint32 // FSF bits
}

// Encode writes the results.
func (r *FSInfoRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.encode(e); r.Status != OK {
		return
	}
	for _, v := range [...]uint32{r.ReadMax, r.ReadPref, r.ReadMultiple, r.WriteMax, r.WritePref, r.WriteMultiple, r.DirPref} {
		e.Uint32(v)
	}
	e.Uint64(r.MaxFileSize)
	r.TimeDelta.encode(e)
	e.Uint32(r.Properties)
}

// Decode reads the results.
func (r *FSInfoRes) Decode(d *xdr.Decoder) error {
	*r = FSInfoRes{Status: Status(d.Uint32())}
	if r.Attr.decode(d); r.Status == OK {
		r.ReadMax, r.ReadPref, r.ReadMultiple = d.Uint32(), d.Uint32(), d.Uint32()
		r.WriteMax, r.WritePref, r.WriteMultiple = d.Uint32(), d.Uint32(), d.Uint32()
		r.DirPref, r.MaxFileSize = d.Uint32(), d.Uint64()
		r.TimeDelta.decode(d)
		r.Properties = d.Uint32()
	}
	return d.Err()
}

// PathConfRes are the results of PATHCONF (§3.3.20).
type PathConfRes struct {
	Status          Status
	Attr            PostOpAttr
	MaxLinks        uint32 // this and all else with OK
	MaxName         uint32 // bytes
	NoTruncate      bool   // longer names are refused
	ChownRestricted bool   // only the superuser may give a file away
	CaseInsensitive bool
	CasePreserving  bool
}

// Encode writes the results.
func (r *PathConfRes) Encode(e *xdr.Encoder) {
	e.Uint32(uint32(r.Status))
	if r.Attr.encode(e); r.Status != OK {
		return
	}
	e.Uint32(r.MaxLinks)
	e.Uint32(r.MaxName)
	for _, v := range [...]bool{r.NoTruncate, r.ChownRestricted, r.CaseInsensitive, r.CasePreserving} {
		e.Bool(v)
	}
}

// Decode reads the results.
func (r *PathConfRes) Decode(d *xdr.Decoder) error {
	*r = PathConfRes{Status: Status(d.Uint32())}
	if r.Attr.decode(d); r.Status == OK {
		r.MaxLinks, r.MaxName = d.Uint32(), d.Uint32()
		r.NoTruncate, r.ChownRestricted, r.CaseInsensitive, r.CasePreserving = d.Bool(), d.Bool(), d.Bool(), d.Bool()
	}
	return d.Err()
}
