package afsd_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/rx"
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/afsd"
	"urnic/ulp/rx/afs/bos"
	"urnic/ulp/rx/afs/cb"
	"urnic/ulp/rx/afs/fs"
	"urnic/ulp/rx/afs/pt"
	"urnic/ulp/rx/afs/ubik"
	"urnic/ulp/rx/afs/vl"
	"urnic/ulp/rx/afs/vol"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rxudp"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// serve opens a cell on free ports of the loopback address.
func serve(t *testing.T) *afsd.Cell {
	t.Helper()
	cell, err := afsd.New(afsd.Config{Name: "example.com", Addr: loopback, Admin: afs.Anybody, Administrators: []string{"admin"}})
	if err != nil {
		t.Fatal(err)
	}
	err = cell.Serve(func(_ uint16, services []rx.Service) (rx.Endpoint, error) {
		return rxudp.Open(t.Context(), rxudp.Config{Addr: netip.AddrPortFrom(loopback, 0), Services: services})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cell.Close(); err != nil {
			t.Error(err)
		}
	})
	return cell
}

// client opens an endpoint for a client, which serves service 1.
func client(t *testing.T, m *rpc.Mux) *rxudp.Endpoint {
	t.Helper()
	e, err := rxudp.Open(t.Context(), rxudp.Config{
		Addr: netip.AddrPortFrom(loopback, 0), Services: []rx.Service{{ID: afs.ServiceCallback, Handler: rx.Stream(m.Serve)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// dial returns how calls of a service begin.
func dial(t *testing.T, e rx.Endpoint, cell *afsd.Cell, port, service uint16) func(context.Context) (rpc.Call, error) {
	t.Helper()
	conn, err := e.Dial(t.Context(), cell.Endpoint(port).Addr(), service, rx.DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return rpc.Over(conn.Begin)
}

func TestEachServerOfACellAnswers(t *testing.T) {
	ctx, cell := t.Context(), serve(t)
	id, err := cell.AddVolume(fs.VolumeConfig{Name: "root.cell"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := cell.Files.Put(id, "hello", []byte("hello\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := client(t, cb.NewMux(cb.Config{}))
	users := pt.NewClient(dial(t, e, cell, afs.PortPT, afs.ServicePT))
	if _, err := users.CreateUser(ctx, "alice", 0); err != nil {
		t.Error(err)
	}
	if s, err := ubik.NewClient(dial(t, e, cell, afs.PortVL, afs.ServiceUbikVote)).State(ctx); err != nil || s.IsSyncSite == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	entry, err := vl.NewClient(dial(t, e, cell, afs.PortVL, afs.ServiceVL)).ByNameWithUUIDs(ctx, "root.cell")
	if err != nil || entry.IDs[vl.ReadWrite] != id || entry.Sites[0].UUID != cell.UUID {
		t.Errorf("%+v, %v", entry, err)
	}
	all, err := vol.NewClient(dial(t, e, cell, afs.PortVolume, afs.ServiceVolume)).List(ctx, 0)
	if err != nil || len(all) != 1 || all[0].ID != id {
		t.Errorf("%+v, %v", all, err)
	}
	processes, err := bos.NewClient(dial(t, e, cell, afs.PortBos, afs.ServiceBos)).Processes(ctx)
	if err != nil || !slices.Equal(processes, []string{"ptserver", "vlserver", "fs"}) {
		t.Errorf("%v, %v", processes, err)
	}
	var b strings.Builder
	if _, _, err := fs.NewClient(dial(t, e, cell, afs.PortFile, afs.ServiceFile)).Fetch(ctx, f, 0, 100, &b); err != nil || b.String() != "hello\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestClientsAreCalledBack(t *testing.T) {
	ctx, cell := t.Context(), serve(t)
	id, err := cell.AddVolume(fs.VolumeConfig{Name: "vol", Rights: fs.All})
	if err != nil {
		t.Fatal(err)
	}
	f, err := cell.Files.Put(id, "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan []afs.FID, 1)
	reader := client(t, cb.NewMux(cb.Config{Changed: func(_ context.Context, files []afs.FID) { changed <- files }}))
	writer := client(t, cb.NewMux(cb.Config{}))
	if _, err := fs.NewClient(dial(t, reader, cell, afs.PortFile, afs.ServiceFile)).Status(ctx, f); err != nil {
		t.Fatal(err)
	}
	files := fs.NewClient(dial(t, writer, cell, afs.PortFile, afs.ServiceFile))
	if _, err := files.Store(ctx, f, 0, 3, 3, strings.NewReader("abc")); err != nil {
		t.Fatal(err)
	}
	if got := <-changed; !slices.Equal(got, []afs.FID{f}) {
		t.Errorf("%v", got)
	}
}

func TestPortThatCantBeOpenedClosesTheOthers(t *testing.T) {
	cell, err := afsd.New(afsd.Config{Addr: loopback})
	if err != nil {
		t.Fatal(err)
	}
	cause, n := errors.New("no more"), 0
	err = cell.Serve(func(_ uint16, services []rx.Service) (rx.Endpoint, error) {
		if n++; n == 3 {
			return nil, cause
		}
		return rxudp.Open(t.Context(), rxudp.Config{Addr: netip.AddrPortFrom(loopback, 0), Services: services})
	})
	if !errors.Is(err, cause) {
		t.Error(err)
	}
	if _, err := afsd.New(afsd.Config{Addr: netip.IPv6Loopback()}); err == nil {
		t.Error("a cell at an IPv6 address")
	}
}
