//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/ownnet"
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
	"urnic/ulp/rx/rxdebug"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxudp"
)

// afsIPv4 is where OpenAFS's servers are in a network of a test's own.
const afsIPv4 = "10.7.0.1"

// An openAFS is OpenAFS's servers, which run at one address.
type openAFS struct {
	addr netip.Addr
	pid  string
}

// startOpenAFS starts the servers. They end with the test.
func startOpenAFS(t *testing.T, addr string, options ...string) *openAFS {
	t.Helper()
	return openAFSCell(t, append([]string{"serve", addr}, options...)...)
}

// openAFSCell makes a place for the tools, with or without servers.
func openAFSCell(t *testing.T, args ...string) *openAFS {
	t.Helper()
	cmd := exec.Command(lab("rx/openafs"), args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // that ends them
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, ready := strings.CutPrefix(strings.TrimSpace(line), "ready pid=")
	if !ready {
		t.Fatalf("OpenAFS's servers do not start: %q, %v\n%s", line, err, &stderr)
	}
	return &openAFS{netip.MustParseAddr(args[1]), pid}
}

// tool runs one of OpenAFS's tools and returns what it prints.
func (a *openAFS) tool(args ...string) (string, error) {
	out, err := exec.Command(lab("rx/openafs"), append([]string{"run", a.pid}, args...)...).CombinedOutput()
	return string(out), err
}

// dial makes a connection to a server, as the superuser unless security is null.
func (a *openAFS) dial(t *testing.T, port, service uint16, s rxSecurity) rx.Conn {
	t.Helper()
	return dialRx(t, netip.AddrPortFrom(a.addr, port), service, rx.DialConfig{Security: s.client(t, superuser())})
}

// superuser is who may do everything, as the tools' option -localauth makes it.
func superuser() rxkad.Contents { return rxkad.Contents{Name: rxkad.Superuser} }

// kerberosOnly are the ways to secure a connection to OpenAFS's servers, whose key is not for old tickets.
func kerberosOnly() []rxSecurity {
	return slices.DeleteFunc(slices.Clone(rxSecurities), func(s rxSecurity) bool { return s.old })
}

func TestRxWithOpenAFSServers(t *testing.T) {
	t.Parallel()
	ownnet.Run(t, func(t *testing.T) {
		a := startOpenAFS(t, afsIPv4, "-jumbo")
		t.Run("calls", func(t *testing.T) {
			for _, s := range kerberosOnly() {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					t.Run("ptserver", func(t *testing.T) { a.ptserver(t, s) })
					t.Run("vlserver", func(t *testing.T) { a.vlserver(t, s) })
					t.Run("volserver", func(t *testing.T) { a.volserver(t, s) })
					t.Run("ubik", func(t *testing.T) { a.ubik(t, s) })
					t.Run("bosserver", func(t *testing.T) { a.bosserver(t, s) })
					t.Run("fileserver", func(t *testing.T) { a.fileserver(t, s) })
				})
			}
		})
		t.Run("debug packets", a.answersDebug)
		t.Run("rxdebug", a.askedByRxdebug)
	}, afsIPv4)
}

// ptserver makes users and groups and looks them up. Without a ticket it may do neither.
func (a *openAFS) ptserver(t *testing.T, s rxSecurity) {
	ctx := t.Context()
	c := pt.NewClient(rpc.Over(a.dial(t, afs.PortPT, afs.ServicePT, s).Begin))
	if _, err := c.ListMax(ctx); err != nil {
		t.Error(err)
	}
	names := []string{"system:administrators", "system:anyuser", "nobody-has-this-name"}
	ids, err := c.NamesToIDs(ctx, names)
	if want := []int32{pt.Administrators, pt.AnyUser, pt.Anonymous}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("IDs of %q: %v, %v; want %v", names, ids, err, want)
	}
	if got, err := c.IDsToNames(ctx, ids[:2]); err != nil || !slices.Equal(got, names[:2]) {
		t.Errorf("names of %v: %q, %v", ids, got, err)
	}
	user, group := "user"+s.name, "group"+s.name
	if s.none {
		_, err := c.CreateUser(ctx, user, 0)
		if !errors.Is(err, pt.ErrPermission) {
			t.Errorf("creating a user without a ticket: %v", err)
		}
		if _, err := c.Entries(ctx, pt.Users); !errors.Is(err, pt.ErrPermission) {
			t.Errorf("listing all without a ticket: %v", err)
		}
		return
	}
	uid, err := c.CreateUser(ctx, user, 0)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := c.CreateGroup(ctx, "system:"+group, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddToGroup(ctx, uid, gid); err != nil {
		t.Error(err)
	}
	if member, err := c.IsMember(ctx, uid, gid); err != nil || !member {
		t.Errorf("member: %v, %v", member, err)
	}
	if all, err := c.Elements(ctx, gid); err != nil || !slices.Equal(all, []int32{uid}) {
		t.Errorf("members %v, %v", all, err)
	}
	if e, err := c.Entry(ctx, uid); err != nil || e.Name != user || e.ID != uid || e.Count != 1 {
		t.Errorf("entry %+v, %v", e, err)
	}
	entries, err := c.Entries(ctx, pt.Users|pt.Groups)
	if err != nil || !slices.ContainsFunc(entries, func(e pt.Entry) bool { return e.Name == user }) {
		t.Errorf("entries %+v, %v", entries, err)
	}
	if _, err := c.CreateUser(ctx, user, 0); !errors.Is(err, pt.ErrNameExists) {
		t.Errorf("creating a user twice: %v", err)
	}
	if err := c.Delete(ctx, gid); err != nil {
		t.Error(err)
	}
	if _, err := c.Entry(ctx, gid); !errors.Is(err, pt.ErrNoEntry) {
		t.Errorf("entry of a deleted group: %v", err)
	}
}

// vlserver registers a volume, looks it up and deletes it.
func (a *openAFS) vlserver(t *testing.T, s rxSecurity) {
	ctx := t.Context()
	c := vl.NewClient(rpc.Over(a.dial(t, afs.PortVL, afs.ServiceVL, s).Begin))
	if err := c.Probe(ctx); err != nil {
		t.Error(err)
	}
	// What begins with 255 is the number of a server that has addresses of its own.
	if addrs, err := c.Addrs(ctx); err != nil || len(addrs) != 1 || addrs[0] != 0xff000001 {
		t.Errorf("addresses %v, %v", addrs, err)
	}
	server, err := c.Server(ctx, vl.ServerKey{By: vl.ByIndex, Index: 1})
	if err != nil || len(server.Addrs) != 1 || server.Addrs[0].Addr() != a.addr {
		t.Fatalf("server %+v, %v", server, err)
	}
	if _, err := c.ByName(ctx, "nothing"); !errors.Is(err, vl.ErrNoEntry) {
		t.Errorf("a volume that does not exist: %v", err)
	}
	if s.none {
		if _, err := c.NewID(ctx, 1); !errors.Is(err, vl.ErrPermission) {
			t.Errorf("a volume ID without a ticket: %v", err)
		}
		return
	}
	id, err := c.NewID(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}
	name := "vl." + s.name
	e := vl.Entry{Name: name, Sites: []vl.Site{{Server: server.Addrs[0], Flags: vl.SiteRW}}, IDs: [3]uint32{id, id + 1, id + 2}, Flags: vl.HasReadWrite}
	if err := c.Create(ctx, &e); err != nil {
		t.Fatal(err)
	}
	for _, get := range []func() (vl.Entry, error){
		func() (vl.Entry, error) { return c.ByName(ctx, name) },
		func() (vl.Entry, error) { return c.ByID(ctx, id, vl.ReadWrite) },
		func() (vl.Entry, error) { return c.ByNameWithUUIDs(ctx, name) },
	} {
		if got, err := get(); err != nil || got.Name != name || got.IDs != e.IDs || len(got.Sites) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	all, err := c.List(ctx, vl.Attributes{}, "")
	if err != nil || !slices.ContainsFunc(all, func(e vl.Entry) bool { return e.Name == name }) {
		t.Errorf("all volumes: %+v, %v", all, err)
	}
	if err := c.Lock(ctx, id, vl.ReadWrite, vl.Move); err != nil {
		t.Error(err)
	}
	if err := c.Lock(ctx, id, vl.ReadWrite, vl.Move); !errors.Is(err, vl.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if err := c.Unlock(ctx, id, vl.ReadWrite, vl.UnlockAll); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, id, vl.ReadWrite); err != nil {
		t.Error(err)
	}
	if _, err := c.Stats(ctx); err != nil {
		t.Error(err)
	}
}

// volserver makes a volume with a file of several MiB out of a dump, and dumps it.
func (a *openAFS) volserver(t *testing.T, s rxSecurity) {
	const size = 6 << 20
	ctx := t.Context()
	c := vol.NewClient(rpc.Over(a.dial(t, afs.PortVolume, afs.ServiceVolume, s).Begin))
	if all, err := c.Partitions(ctx); err != nil || !slices.Equal(all, []int32{0}) {
		t.Errorf("partitions %v, %v", all, err)
	}
	if p, err := c.Partition(ctx, 0); err != nil || p.Name != "/vicepa" {
		t.Errorf("partition %+v, %v", p, err)
	}
	if s.none {
		_, err := c.List(ctx, 0)
		if err != nil {
			t.Error(err)
		}
		if _, _, err := c.Create(ctx, vol.CreateArgs{Name: "x", ID: 77}); !errors.Is(err, vol.ErrAccess) {
			t.Errorf("creating a volume without a ticket: %v", err)
		}
		return
	}
	id, name := rand.Uint32N(1<<20)+1<<29, "full."+s.name
	empty := a.dumpOf(t, c, a.newVolume(t, c, "empty."+s.name, id, nil))
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content) // it never fails
	full := a.newVolume(t, c, name, id+1, dumpWithFile(t, empty, content))
	if dump := a.dumpOf(t, c, full); !bytes.Contains(dump, content) {
		t.Errorf("the dump of %d bytes has not the file that was restored", len(dump))
	}
	all, err := c.List(ctx, 0)
	if err != nil || !slices.ContainsFunc(all, func(i vol.Info) bool { return i.ID == full && i.Name == name && i.Status == vol.OK }) {
		t.Errorf("volumes %+v, %v", all, err)
	}
	if x, err := c.VolumeExtended(ctx, 0, full); err != nil || x.Name != name {
		t.Errorf("volume %+v, %v", x, err)
	}
	if _, err := c.Volume(ctx, 0, 1); err == nil {
		t.Error("there is a volume 1")
	}
	for _, id := range []uint32{id, full} {
		tr, err := c.Begin(ctx, id, 0, vol.Busy)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Delete(ctx); err != nil {
			t.Error(err)
		}
		if err := tr.End(ctx); err != nil {
			t.Error(err)
		}
	}
}

// newVolume makes a volume, of a dump if that is not nil.
func (*openAFS) newVolume(t *testing.T, c *vol.Client, name string, id uint32, dump []byte) uint32 {
	t.Helper()
	ctx := t.Context()
	tr, id, err := c.Create(ctx, vol.CreateArgs{Name: name, Type: vol.ReadWrite, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if dump != nil {
		if n, err := tr.Restore(ctx, vol.Cookie{Name: name, Type: vol.ReadWrite, Parent: id}, bytes.NewReader(dump)); err != nil || n != int64(len(dump)) {
			t.Fatalf("restore: %d of %d bytes: %v", n, len(dump), err)
		}
	}
	if err := tr.SetFlags(ctx, 0); err != nil {
		t.Error(err)
	}
	if err := tr.End(ctx); err != nil {
		t.Fatal(err)
	}
	return id
}

func (*openAFS) dumpOf(t *testing.T, c *vol.Client, id uint32) []byte {
	t.Helper()
	ctx := t.Context()
	tr, err := c.Begin(ctx, id, 0, vol.Busy)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := tr.Dump(ctx, 0, &b); err != nil || n != int64(b.Len()) {
		t.Errorf("dump: %d bytes of %d, %v", n, b.Len(), err)
	}
	if err := tr.End(ctx); err != nil {
		t.Error(err)
	}
	return b.Bytes()
}

// dumpWithFile adds a file, which is in no directory, to the dump of a volume without files.
// A vnode is: its number and its uniquifier, then fields, each of a letter and a value.
func dumpWithFile(t *testing.T, empty, content []byte) []byte {
	t.Helper()
	const end = 5 // a mark and a magic number
	if n := len(empty); n < end || !bytes.HasSuffix(empty, []byte{4, 0x3a, 0x21, 0x4b, 0x6e}) {
		t.Fatalf("a dump of %d bytes has no end", n)
	}
	order := binary.BigEndian
	b := slices.Clone(empty[:len(empty)-end])
	b = order.AppendUint32(order.AppendUint32(append(b, 3), 2), 2)
	b = append(b, 't', 1)                                           // a file
	b = order.AppendUint16(append(b, 'l'), 1)                       // links
	b = order.AppendUint32(append(b, 'v'), 1)                       // data version
	b = order.AppendUint32(append(b, 'm'), 1_700_000_000)           // modified
	b = order.AppendUint32(append(b, 's'), 1_700_000_000)           // by a client
	b = order.AppendUint32(append(b, 'a'), 0)                       // author
	b = order.AppendUint32(append(b, 'o'), 0)                       // owner
	b = order.AppendUint32(append(b, 'g'), 0)                       // group
	b = order.AppendUint16(append(b, 'b'), 0o666)                   // mode
	b = order.AppendUint32(append(b, 'p'), 1)                       // parent
	b = order.AppendUint32(append(b, 'f'), uint32(len(content)))    // data
	return append(append(b, content...), empty[len(empty)-end:]...) //nolint:gocritic // to a new slice
}

// ubik asks the databases' servers who they think is in charge.
func (a *openAFS) ubik(t *testing.T, s rxSecurity) {
	for _, port := range []uint16{afs.PortPT, afs.PortVL} {
		c := ubik.NewClient(rpc.Over(a.dial(t, port, afs.ServiceUbikVote, s).Begin))
		if state, err := c.State(t.Context()); err != nil {
			t.Errorf("port %d: %+v, %v", port, state, err)
		}
	}
}

// bosserver makes a process, and ends it. Without a ticket it may only look.
func (a *openAFS) bosserver(t *testing.T, s rxSecurity) {
	ctx := t.Context()
	c := bos.NewClient(rpc.Over(a.dial(t, afs.PortBos, afs.ServiceBos, s).Begin))
	if users, err := c.Users(ctx); err != nil || !slices.Contains(users, "rxadmin") {
		t.Errorf("users %q, %v", users, err)
	}
	if cell, hosts, err := c.Cell(ctx); err != nil || cell != "rx.test" || len(hosts) != 1 {
		t.Errorf("cell %q with hosts %q, %v", cell, hosts, err)
	}
	if _, err := c.State(ctx, "nothing"); !errors.Is(err, bos.ErrNoEntry) {
		t.Errorf("the state of no process: %v", err)
	}
	name := "sleeper-" + s.name
	create := bos.CreateArgs{Type: "simple", Name: name, Parameters: [6]string{"/usr/bin/rxdebug"}}
	if s.none {
		if err := c.Create(ctx, create); !errors.Is(err, bos.ErrAccess) {
			t.Errorf("creating a process without a ticket: %v", err)
		}
		return
	}
	if err := c.Create(ctx, create); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, create); !errors.Is(err, bos.ErrExists) {
		t.Errorf("creating a process twice: %v", err)
	}
	if all, err := c.Processes(ctx); err != nil || !slices.Contains(all, name) {
		t.Errorf("processes %q, %v", all, err)
	}
	if i, err := c.Info(ctx, name); err != nil || i.Type != "simple" || i.Goal != bos.Running {
		t.Errorf("%+v, %v", i, err)
	}
	if p, err := c.Parameters(ctx, name); err != nil || !slices.Equal(p, []string{"/usr/bin/rxdebug"}) {
		t.Errorf("parameters %q, %v", p, err)
	}
	if err := c.Delete(ctx, name); !errors.Is(err, bos.ErrBusy) {
		t.Errorf("deleting a process that runs: %v", err)
	}
	if err := c.Set(ctx, name, bos.Down, false); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(patience); ; {
		if err := c.Delete(ctx, name); err == nil {
			break
		} else if !errors.Is(err, bos.ErrBusy) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// fileserver asks what it says to everybody. It asks us first who we are.
func (a *openAFS) fileserver(t *testing.T, s rxSecurity) {
	ctx := t.Context()
	e := openRx(t, rxudp.Config{Addr: netip.AddrPortFrom(a.addr, 0), Services: []rx.Service{
		{ID: afs.ServiceCallback, Handler: rx.Stream(cb.NewMux(cb.Config{Identity: cb.Identity{UUID: afs.UUID{1, byte(s.level), byte(len(s.name))}}}).Serve)},
	}})
	conn, err := e.Dial(ctx, netip.AddrPortFrom(a.addr, afs.PortFile), afs.ServiceFile, rx.DialConfig{Security: s.client(t, superuser())})
	if err != nil {
		t.Fatal(err)
	}
	c := fs.NewClient(rpc.Over(conn.Begin))
	if clock, err := c.Time(ctx); err != nil || clock == (fs.Clock{}) {
		t.Errorf("time %+v, %v", clock, err)
	}
	if all, err := c.Capabilities(ctx); err != nil || len(all) == 0 {
		t.Errorf("capabilities %v, %v", all, err)
	}
	if _, err := c.Status(ctx, afs.FID{Volume: 12345, Vnode: 1, Unique: 1}); !errors.Is(err, afs.ErrNoVolume) {
		t.Errorf("status in no volume: %v", err)
	}
	if err := c.GiveUpAll(ctx); err != nil {
		t.Error(err)
	}
}

// answersDebug has our client of debug packets ask every server for everything.
func (a *openAFS) answersDebug(t *testing.T) {
	for _, port := range []uint16{afs.PortFile, afs.PortPT, afs.PortVL, afs.PortVolume, afs.PortBos} {
		c, err := rxdebug.Dial(t.Context(), netip.AddrPortFrom(a.addr, port), rxdebug.Config{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Ask(t.Context(), rxdebug.Want{Version: true, Basic: true, Conns: true, Peers: true, Stats: true, AllConns: true})
		if err != nil {
			t.Errorf("port %d: %v", port, err)
		} else {
			var b bytes.Buffer
			if err := r.WriteText(&b); err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
