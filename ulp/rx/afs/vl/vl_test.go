package vl_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/internal/recorded"
	"urnic/ulp/rx/afs/vl"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rpc/rpctest"
	"urnic/ulp/rx/secure"
)

const (
	host1 afs.Addr = 0x0a000001
	host2 afs.Addr = 0x0a000002
	host3 afs.Addr = 0x0a000003
)

func newClient() *vl.Client {
	return clientOf(vl.NewDB(nil), vl.Config{Admin: afs.Anybody, PartLen: 3})
}

func clientOf(db *vl.DB, c vl.Config) *vl.Client {
	return vl.NewClient(rpctest.Serve(vl.NewMux(db, c)))
}

func entry(name string, id uint32, sites ...vl.Site) *vl.Entry {
	if len(sites) == 0 {
		sites = []vl.Site{{Server: host1, Flags: vl.SiteRW}}
	}
	return &vl.Entry{Name: name, IDs: [3]uint32{id, id + 1, id + 2}, Flags: vl.HasReadWrite, Sites: sites}
}

// must returns v, or ends the test.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestEntriesAreFoundByNameAndIDs(t *testing.T) {
	ctx, c := t.Context(), newClient()
	id := must(c.NewID(ctx, 3))(t)
	e := entry("vol", id, vl.Site{Server: host1, Partition: 2, Flags: vl.SiteRW}, vl.Site{Server: host2, Partition: 1, Flags: vl.SiteRO})
	e.Flags |= vl.HasReadOnly
	if err := c.Create(ctx, e); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vol", "vol.readonly", fmt.Sprint(id), fmt.Sprint(id + 1)} {
		if got := must(c.ByName(ctx, name))(t); !reflect.DeepEqual(&got, e) {
			t.Errorf("%s: %+v; want %+v", name, got, e)
		}
		if got := must(c.ByNameWithUUIDs(ctx, name))(t); !reflect.DeepEqual(&got, e) {
			t.Errorf("%s by UUID: %+v; want %+v", name, got, e)
		}
	}
	for typ := range int32(3) {
		must(c.ByID(ctx, id+uint32(typ), typ))(t)
		must(c.ByIDWithUUIDs(ctx, id+uint32(typ), vl.AnyType))(t)
		if _, err := c.ByID(ctx, id+uint32(typ), (typ+1)%3); !errors.Is(err, vl.ErrNoEntry) {
			t.Errorf("as another type: %v", err)
		}
	}
	if next := must(c.NewID(ctx, 1))(t); next != id+3 {
		t.Errorf("the next ID is %d, not %d", next, id+3)
	}
	if err := c.Delete(ctx, id+1, vl.ReadOnly); err != nil {
		t.Error(err)
	}
	if _, err := c.ByName(ctx, "vol"); !errors.Is(err, vl.ErrNoEntry) {
		t.Errorf("after it was deleted: %v", err)
	}
}

func TestNewIDsAreBehindThoseOfEntries(t *testing.T) {
	ctx, c := t.Context(), newClient()
	if err := c.Create(ctx, entry("vol", 0x30000000)); err != nil {
		t.Fatal(err)
	}
	if id := must(c.NewID(ctx, 1))(t); id != 0x30000003 {
		t.Errorf("%#x", id)
	}
}

func TestEntriesAreListedByAttributes(t *testing.T) {
	ctx, c := t.Context(), newClient()
	for i := range uint32(10) {
		host := host1 + afs.Addr(i%2)
		e := entry(fmt.Sprint("vol.", i), 100+10*i, vl.Site{Server: host, Partition: int32(i % 3), Flags: vl.SiteRW})
		if i == 7 {
			e.Flags |= vl.HasReadOnly
		}
		if err := c.Create(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		vl.Attributes
		pattern string
		want    int
	}{
		"all":                {want: 10},
		"server":             {Attributes: vl.Attributes{Mask: vl.ByServer, Server: host2}, want: 5},
		"partition":          {Attributes: vl.Attributes{Mask: vl.ByPartition, Partition: 2}, want: 3},
		"server, partition":  {Attributes: vl.Attributes{Mask: vl.ByServer | vl.ByPartition, Server: host1, Partition: 0}, want: 2},
		"no server":          {Attributes: vl.Attributes{Mask: vl.ByServer, Server: host3}, want: 0},
		"ID":                 {Attributes: vl.Attributes{Mask: vl.ByID, ID: 112}, want: 1},
		"flag":               {Attributes: vl.Attributes{Mask: vl.ByFlag, Flag: vl.HasReadOnly}, want: 1},
		"pattern":            {pattern: `vol\.[1-4]`, want: 4},
		"pattern of a whole": {pattern: `vol`, want: 0},
	} {
		if got := must(c.List(ctx, tc.Attributes, tc.pattern))(t); len(got) != tc.want {
			t.Errorf("%s: %d entries; want %d", name, len(got), tc.want)
		}
	}
	if _, err := c.List(ctx, vl.Attributes{}, "("); !errors.Is(err, vl.ErrBadName) {
		t.Errorf("a bad pattern: %v", err)
	}
}

func TestLocksExcludeAndExpire(t *testing.T) {
	now := time.Unix(1700000000, 0)
	ctx, c := t.Context(), clientOf(vl.NewDB(func() time.Time { return now }), vl.Config{Admin: afs.Anybody})
	e := entry("vol", 100)
	if err := errors.Join(c.Create(ctx, e), c.Lock(ctx, 100, vl.ReadWrite, vl.Move)); err != nil {
		t.Fatal(err)
	}
	if err := c.Lock(ctx, 101, vl.ReadOnly, vl.Dump); !errors.Is(err, vl.ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	if got := must(c.ByName(ctx, "vol"))(t); got.Flags != vl.HasReadWrite|vl.Move {
		t.Errorf("flags %#x", got.Flags)
	}
	if err := c.Unlock(ctx, 100, vl.AnyType, vl.UnlockAll); err != nil {
		t.Error(err)
	}
	if got := must(c.ByName(ctx, "vol"))(t); got.Flags != vl.HasReadWrite {
		t.Errorf("flags %#x", got.Flags)
	}
	if err := c.Lock(ctx, 100, vl.ReadWrite, vl.Release); err != nil {
		t.Error(err)
	}
	if err := c.Replace(ctx, 100, vl.ReadWrite, entry("vol", 100), vl.UnlockAll); err != nil { // unlocks, too
		t.Error(err)
	}
	if err := c.Lock(ctx, 100, vl.ReadWrite, vl.Release); err != nil {
		t.Error(err)
	}
	now = now.Add(11 * time.Hour)
	if err := c.Lock(ctx, 100, vl.ReadWrite, vl.Clone); err != nil {
		t.Errorf("after a day: %v", err)
	}
}

func TestServersAreKnownByTheirAddressesAndUUIDs(t *testing.T) {
	ctx, c := t.Context(), newClient()
	if err := c.Create(ctx, entry("vol", 100)); err != nil { // makes host1 known
		t.Fatal(err)
	}
	u1, u2 := afs.UUID{1}, afs.UUID{2}
	if err := errors.Join(
		c.Register(ctx, vl.Registration{UUID: u1, Addrs: []afs.Addr{host1, host2}}),
		c.Register(ctx, vl.Registration{UUID: u2, Addrs: []afs.Addr{host3}}),
	); err != nil {
		t.Fatal(err)
	}
	want := vl.Server{UUID: u1, Unique: 1, Addrs: []afs.Addr{host1, host2}}
	for _, k := range []vl.ServerKey{{By: vl.ByAddr, Addr: host2}, {By: vl.ByIndex, Index: 1}, {By: vl.ByUUID, UUID: u1}} {
		if got := must(c.Server(ctx, k))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %+v", k, got)
		}
	}
	if got := must(c.Addrs(ctx))(t); !slices.Equal(got, []afs.Addr{host1, host3}) {
		t.Errorf("%v", got)
	}
	e := must(c.ByNameWithUUIDs(ctx, "vol"))(t)
	if s := e.Sites[0]; s.UUID != u1 || s.Unique != 1 || s.Flags != vl.SiteRW|vl.SiteUUID {
		t.Errorf("%+v", s)
	}
	if err := c.ChangeAddr(ctx, host1, host1+100); err != nil {
		t.Fatal(err)
	}
	if e := must(c.ByName(ctx, "vol"))(t); e.Sites[0].Server != host1+100 {
		t.Errorf("the volume did not move with its server: %+v", e.Sites)
	}
	for _, a := range []afs.Addr{host1 + 100, host2} {
		if err := c.ChangeAddr(ctx, a, 0xffffffff); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Server(ctx, vl.ServerKey{By: vl.ByUUID, UUID: u1}); !errors.Is(err, vl.ErrNoEntry) {
		t.Errorf("a server without addresses: %v", err)
	}
	must(c.ByName(ctx, "vol"))(t) // and still has its volumes
}

func TestRefusedRequestsHaveTheServersCodes(t *testing.T) {
	ctx, c := t.Context(), newClient()
	if err := c.Create(ctx, entry("vol", 100)); err != nil {
		t.Fatal(err)
	}
	get := func(_ vl.Entry, err error) error { return err }
	server := func(_ vl.Server, err error) error { return err }
	_, tooMany := c.NewID(ctx, 5000)
	for i, tc := range []struct{ err, want error }{
		{c.Create(ctx, entry("vol", 200)), vl.ErrNameExists},
		{c.Create(ctx, entry("other", 102)), vl.ErrIDExists},
		{c.Create(ctx, entry("a b", 200)), vl.ErrBadName},
		{c.Create(ctx, &vl.Entry{Name: "none"}), vl.ErrBadServer},
		{c.Create(ctx, entry("p", 200, vl.Site{Partition: 255})), vl.ErrBadPartition},
		{c.Create(ctx, entry("f", 200, vl.Site{Flags: 0x100})), vl.ErrBadSiteFlags},
		{get(c.ByName(ctx, "vol.backup")), vl.ErrNoEntry},
		{get(c.ByName(ctx, "a/b")), vl.ErrBadName},
		{get(c.ByID(ctx, 100, 3)), vl.ErrBadType},
		{get(c.ByID(ctx, 0, vl.AnyType)), vl.ErrNoEntry},
		{c.Delete(ctx, 4711, vl.AnyType), vl.ErrNoEntry},
		{c.Replace(ctx, 4711, vl.AnyType, entry("vol", 100), 0), vl.ErrNoEntry},
		{c.Replace(ctx, 100, vl.AnyType, entry("vol", 100), 8), vl.ErrBadRelease},
		{c.Lock(ctx, 100, vl.AnyType, 1), vl.ErrBadOperation},
		{c.Unlock(ctx, 100, vl.AnyType, 0), vl.ErrBadRelease},
		{server(c.Server(ctx, vl.ServerKey{})), vl.ErrBadMask},
		{server(c.Server(ctx, vl.ServerKey{By: vl.ByIndex})), vl.ErrBadIndex},
		{server(c.Server(ctx, vl.ServerKey{By: vl.ByIndex, Index: 2})), vl.ErrNoEntry},
		{c.Register(ctx, vl.Registration{UUID: afs.UUID{1}}), afs.ErrInvalid},
		{c.ChangeAddr(ctx, host3, host2), vl.ErrNoEntry},
		{c.ChangeAddr(ctx, host1, host1), vl.ErrMultipleAddress},
		{tooMany, vl.ErrBadIncrement},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("case %d: %v; want %v", i, tc.err, tc.want)
		}
	}
	if s := must(c.Stats(ctx))(t); s.Requests[16] != 7 || s.Aborts[16] != 6 || s.Entries != [3]int32{1, 0, 0} {
		t.Errorf("%+v", s)
	}
}

func TestOnlyAdministratorsChangeTheDatabase(t *testing.T) {
	ctx := t.Context()
	mux := vl.NewMux(vl.NewDB(nil), vl.Config{Admin: func(c secure.Caller) bool { return c.Name == "admin" }})
	nobody, admin := vl.NewClient(rpctest.Serve(mux)), vl.NewClient(rpctest.As(mux, secure.Caller{Name: "admin"}))
	_, err := nobody.NewID(ctx, 1)
	for _, err := range []error{
		err, nobody.Create(ctx, entry("vol", 1)), nobody.Delete(ctx, 1, 0), nobody.Replace(ctx, 1, 0, entry("vol", 1), 0),
		nobody.Lock(ctx, 1, 0, vl.Move), nobody.Unlock(ctx, 1, 0, 1), nobody.Register(ctx, vl.Registration{}), nobody.ChangeAddr(ctx, 1, 2),
	} {
		if !errors.Is(err, vl.ErrPermission) {
			t.Errorf("%v", err)
		}
	}
	if err := errors.Join(nobody.Probe(ctx), admin.Create(ctx, entry("vol", 1))); err != nil {
		t.Error(err)
	}
}

// kAFS asks for capabilities that only AuriStor's servers have.
func TestThereAreNoCapabilities(t *testing.T) {
	capabilities := rpc.NewOp[rpc.Void, afs.Capabilities](65537, "GetCapabilities")
	c := &rpc.Client{Begin: rpctest.Serve(vl.NewMux(vl.NewDB(nil), vl.Config{}))}
	if got, err := capabilities.Call(t.Context(), c, &rpc.Void{}); err != nil || len(got.Words) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestUnknownOperationsAreRefused(t *testing.T) {
	unknown := rpc.NewOp[rpc.Void, rpc.Void](65538, "Unknown")
	c := &rpc.Client{Begin: rpctest.Serve(vl.NewMux(vl.NewDB(nil), vl.Config{}))}
	if _, err := unknown.Call(t.Context(), c, &rpc.Void{}); !errors.Is(err, rpc.ErrOpcode) {
		t.Errorf("%v", err)
	}
}

// OpenAFS's tools and a real server have the same bytes for the same values, besides unused
// places of arrays.
func TestRecordedCallsDecode(t *testing.T) {
	calls := recorded.Calls{Port: afs.PortVL, Service: afs.ServiceVL, Undefined: []string{"CreateEntryN"}}
	recorded.Want(t, calls.Check(t, vl.Operations()), "ListAttributesN2", "GetAddrs", "GetAddrsU", "GetEntryByNameN", "GetEntryByIDN", "GetEntryByNameU",
		"CreateEntryN", "ReplaceEntryN", "GetNewVolumeId", "SetLock", "ReleaseLock")
}

func TestMessagesSurviveTheirEncoding(t *testing.T) {
	rpctest.RoundTrip(t, vl.Operations(), func(structure any) {
		switch e := structure.(type) {
		case *vl.Entry: // has no UUIDs
			for i := range e.Sites {
				e.Sites[i].UUID, e.Sites[i].Unique = afs.UUID{}, 0
			}
		case *vl.UEntry: // has no addresses
			for i := range e.Sites {
				e.Sites[i] = vl.Site{UUID: afs.UUID{1, 2, 15: 16}, Unique: 3, Partition: 4, Flags: 5}
			}
		case *vl.OldEntry:
			e.Match = 0
		}
	})
}

func FuzzMessages(f *testing.F) { rpctest.Fuzz(f, vl.Operations()) }

func ExampleClient() {
	db := vl.NewDB(nil)
	volumes := vl.NewClient(rpctest.Serve(vl.NewMux(db, vl.Config{Admin: afs.Anybody}))) // or rpc.Over(conn.Begin)
	ctx := context.Background()
	fmt.Println(volumes.Create(ctx, &vl.Entry{
		Name: "root.cell", IDs: [3]uint32{536870912, 0, 0}, Flags: vl.HasReadWrite,
		Sites: []vl.Site{{Server: 0x7f070001, Flags: vl.SiteRW}},
	}))
	e, err := volumes.ByName(ctx, "root.cell")
	fmt.Println(e.IDs[vl.ReadWrite], e.Sites[0].Server, err)
	_, err = volumes.ByName(ctx, "home")
	fmt.Println(err)
	// Output:
	// <nil>
	// 536870912 127.7.0.1 <nil>
	// vl.GetEntryByNameN: no such entry (VL_NOENT, 363524)
}
