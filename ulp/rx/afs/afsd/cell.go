package afsd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/bos"
	"urnic/ulp/rx/afs/cb"
	"urnic/ulp/rx/afs/fs"
	"urnic/ulp/rx/afs/pt"
	"urnic/ulp/rx/afs/ubik"
	"urnic/ulp/rx/afs/vl"
	"urnic/ulp/rx/afs/vol"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/secure"
)

// A Config describes a cell.
type Config struct {
	Name string     // of the cell
	Addr netip.Addr // IPv4, at which clients find all servers
	UUID afs.UUID   // of the file server; made of the address if it is zero

	// Admin says who may change things. Nobody may if it is nil.
	Admin afs.Admin

	// Security are the security classes that callers may use, besides null security.
	Security []secure.Server

	// Administrators are those that the overseer lists.
	Administrators []string

	// Now is the clock: time.Now if it is nil.
	Now func() time.Time
}

// A Cell is the servers of a cell. Its fields may be used at any time.
type Cell struct {
	Config
	Users     *pt.DB
	Locations *vl.DB
	Volumes   *vol.Store
	Files     *fs.Server
	Machine   *bos.Machine

	mu        sync.Mutex
	endpoints map[uint16]rx.Endpoint
}

// New returns a cell that is not yet served.
func New(c Config) (*Cell, error) {
	host := afs.AddrOf(c.Addr)
	if host == 0 {
		return nil, fmt.Errorf("afsd: %v is no IPv4 address, and AFS has no others", c.Addr)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.UUID.IsZero() {
		a := c.Addr.Unmap().As4()
		c.UUID = afs.UUID{6: 0x40, 8: 0x80, 12: a[0], 13: a[1], 14: a[2], 15: a[3]}
	}
	cell := &Cell{
		Config: c, Users: pt.NewDB(), Locations: vl.NewDB(c.Now), Volumes: vol.NewStore(vol.StoreConfig{Now: c.Now}),
		Machine:   bos.NewMachine(bos.MachineConfig{Cell: c.Name, Hosts: []string{c.Addr.String()}, Users: c.Administrators, Now: c.Now}),
		endpoints: make(map[uint16]rx.Endpoint),
	}
	cell.Files = fs.NewServer(fs.Config{Admin: c.Admin, Break: cell.callBack, Now: c.Now})
	if err := cell.Locations.Register(vl.Registration{UUID: c.UUID, Addrs: []afs.Addr{host}}); err != nil {
		return nil, err
	}
	return cell, cell.addProcesses()
}

// addProcesses lists the servers with the overseer.
func (c *Cell) addProcesses() error {
	for _, p := range []bos.CreateArgs{
		{Type: "simple", Name: "ptserver", Parameters: [6]string{"ptserver"}},
		{Type: "simple", Name: "vlserver", Parameters: [6]string{"vlserver"}},
		{Type: "fs", Name: "fs", Parameters: [6]string{"fileserver", "volserver", "salvager"}},
	} {
		if err := c.Machine.Create(p); err != nil {
			return fmt.Errorf("afsd: process %s: %w", p.Name, err)
		}
	}
	return nil
}

// AddVolume adds a volume of files to the file server, the volume server and the location
// database, and returns its ID. A read-only one stands alone: it has no read-write volume.
func (c *Cell) AddVolume(v fs.VolumeConfig) (uint32, error) {
	if v.ID == 0 {
		id, err := c.Locations.NewID(3)
		if err != nil {
			return 0, err
		}
		v.ID = id
	}
	e := vl.Entry{Name: v.Name, Sites: []vl.Site{{Server: afs.AddrOf(c.Addr), Flags: vl.SiteRW}}, Flags: vl.HasReadWrite}
	now := afs.TimeOf(c.Now())
	info := vol.Info{
		Name: v.Name, ID: v.ID, ParentID: v.ID, Created: now, Copied: now, Updated: now, Quota: int32(min(v.MaxBytes>>10, 1<<31-1)),
	}
	e.IDs[vl.ReadWrite] = v.ID
	if v.ReadOnly {
		e.IDs = [3]uint32{vl.ReadOnly: v.ID}
		e.Flags, e.Sites[0].Flags, info.Type = vl.HasReadOnly, vl.SiteRO, vol.ReadOnly
	}
	if err := c.Locations.Create(e); err != nil {
		return 0, fmt.Errorf("afsd: volume %s: %w", v.Name, err)
	}
	return v.ID, errors.Join(c.Files.AddVolume(v), c.Volumes.Add(0, info, nil))
}

// Services returns the services of each port.
func (c *Cell) Services() map[uint16][]rx.Service {
	replicated := ubik.Config{Addrs: []afs.Addr{afs.AddrOf(c.Addr)}, Now: c.Now}
	service := func(id uint16, m *rpc.Mux) rx.Service {
		return rx.Service{ID: id, Handler: rx.Stream(m.Serve), Security: c.Security}
	}
	vote, disk := ubik.NewVoteMux(replicated), ubik.NewDiskMux(replicated)
	return map[uint16][]rx.Service{
		afs.PortPT: {
			service(afs.ServicePT, pt.NewMux(c.Users, pt.Config{Admin: c.Admin, Cell: c.Name})),
			service(afs.ServiceUbikVote, vote), service(afs.ServiceUbikDisk, disk),
		},
		afs.PortVL: {
			service(afs.ServiceVL, vl.NewMux(c.Locations, vl.Config{Admin: c.Admin})),
			service(afs.ServiceUbikVote, vote), service(afs.ServiceUbikDisk, disk),
		},
		afs.PortVolume: {service(afs.ServiceVolume, vol.NewMux(c.Volumes, vol.Config{Admin: c.Admin}))},
		afs.PortFile:   {service(afs.ServiceFile, fs.NewMux(c.Files))},
		afs.PortBos:    {service(afs.ServiceBos, bos.NewMux(c.Machine, bos.Config{Admin: c.Admin}))},
	}
}

// Serve opens an endpoint for each port. If one can't be opened, it closes the others.
func (c *Cell) Serve(open func(port uint16, services []rx.Service) (rx.Endpoint, error)) error {
	services := c.Services()
	for _, port := range slices.Sorted(maps.Keys(services)) {
		e, err := open(port, services[port])
		if err != nil {
			return errors.Join(fmt.Errorf("afsd: port %d: %w", port, err), c.Close())
		}
		c.mu.Lock()
		c.endpoints[port] = e
		c.mu.Unlock()
	}
	return nil
}

// Endpoint returns the endpoint of a port, or nil if that is not served.
func (c *Cell) Endpoint(port uint16) rx.Endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints[port]
}

// Close closes the endpoints.
func (c *Cell) Close() error {
	c.mu.Lock()
	endpoints := c.endpoints
	c.endpoints = make(map[uint16]rx.Endpoint)
	c.mu.Unlock()
	var errs []error
	for _, e := range endpoints {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// callBack tells a client of the file server that files have changed. One that does not answer
// has lost its promises by that.
func (c *Cell) callBack(ctx context.Context, client netip.AddrPort, files []afs.FID) {
	e := c.Endpoint(afs.PortFile)
	if e == nil {
		return
	}
	conn, err := e.Dial(ctx, client, afs.ServiceCallback, rx.DialConfig{})
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // whether the client knows or not, the file has changed
	for part := range slices.Chunk(files, afs.MaxFiles) {
		if cb.NewClient(rpc.Over(conn.Begin)).Break(ctx, part) != nil {
			return
		}
	}
}
