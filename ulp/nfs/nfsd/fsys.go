package nfsd

import (
	"context"
	"math"

	"urnic/ulp/nfs/nfs3"
)

// What clients should ask for at once, in bytes, and in multiples of what.
const (
	preferredListing = 64 << 10
	preferredBlock   = 4096
)

// fsStat is FSSTAT (RFC 1813 §3.3.18).
func (s *Server) fsStat(ctx context.Context, c *call, a *nfs3.HandleArgs, r *nfs3.FSStatRes) error {
	o, err := s.object(ctx, c, &a.Handle)
	if err != nil {
		return err
	}
	r.Attr = o.present(&o.attr)
	st, err := o.x.FS.Stat(ctx, o.h)
	if err != nil {
		return err
	}
	r.TotalBytes, r.FreeBytes, r.AvailBytes = st.TotalBytes, st.FreeBytes, st.AvailBytes
	r.TotalFiles, r.FreeFiles, r.AvailFiles = st.TotalFiles, st.FreeFiles, st.AvailFiles
	return nil
}

// fsInfo is FSINFO (§3.3.19).
func (s *Server) fsInfo(ctx context.Context, c *call, a *nfs3.HandleArgs, r *nfs3.FSInfoRes) error {
	o, err := s.object(ctx, c, &a.Handle)
	if err != nil {
		return err
	}
	f := &o.x.features
	*r = nfs3.FSInfoRes{
		Attr: o.present(&o.attr), ReadMax: s.readMax, ReadPref: s.readMax, ReadMultiple: preferredBlock,
		WriteMax: s.writeMax, WritePref: s.writeMax, WriteMultiple: preferredBlock, DirPref: preferredListing,
		MaxFileSize: f.MaxFileSize, Properties: nfs3.FSFHomogeneous,
		TimeDelta: nfs3.Time{Seconds: uint32(f.TimeDelta / 1e9), Nanoseconds: uint32(f.TimeDelta % 1e9)},
	}
	if f.MaxFileSize == 0 {
		r.MaxFileSize = math.MaxInt64
	}
	for _, p := range []struct {
		is  bool
		bit uint32
	}{{f.HardLinks, nfs3.FSFLink}, {f.Symlinks, nfs3.FSFSymlink}, {f.SetTime, nfs3.FSFCanSetTime}} {
		if p.is {
			r.Properties |= p.bit
		}
	}
	return nil
}

// pathConf is PATHCONF (§3.3.20).
func (s *Server) pathConf(ctx context.Context, c *call, a *nfs3.HandleArgs, r *nfs3.PathConfRes) error {
	o, err := s.object(ctx, c, &a.Handle)
	if err != nil {
		return err
	}
	f := &o.x.features
	*r = nfs3.PathConfRes{
		Attr: o.present(&o.attr), MaxLinks: f.MaxLinks, MaxName: uint32(f.MaxName),
		NoTruncate: true, ChownRestricted: true, CaseInsensitive: f.FoldsCase, CasePreserving: true,
	}
	return nil
}
