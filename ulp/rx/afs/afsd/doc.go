// Package afsd is a cell of AFS in one process: its protection, volume location, volume, file
// and overseer servers, in memory, on endpoints of any kind.
//
//	cell, err := afsd.New(afsd.Config{Name: "example.com", Addr: addr, Admin: afs.Anybody})
//	_, err = cell.AddVolume(fs.VolumeConfig{Name: "root.cell"})
//	err = cell.Serve(func(port uint16, services []rx.Service) (rx.Endpoint, error) {
//		return rxudp.Open(ctx, rxudp.Config{Addr: netip.AddrPortFrom(addr, port), Services: services})
//	})
//	defer cell.Close()
//
// It is for tests, and for a first look at AFS's tools and clients. A volume that vos creates or
// restores is one of the volume server only, which keeps its dump; files are in the volumes
// that AddVolume adds.
package afsd
