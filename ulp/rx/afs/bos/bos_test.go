package bos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/bos"
	"urnic/ulp/rx/afs/internal/recorded"
	"urnic/ulp/rx/rpc/rpctest"
)

func newClient(admin afs.Admin) *bos.Client {
	m := bos.NewMachine(bos.MachineConfig{
		Cell: "rx.test", Hosts: []string{"db1", "db2"}, Users: []string{"admin"}, Keys: []bos.Key{{Version: 3, Checksum: 7}},
		Now: func() time.Time { return time.Unix(1700000000, 0) },
	})
	return bos.NewClient(rpctest.Serve(bos.NewMux(m, bos.Config{Admin: admin})))
}

var fs = bos.CreateArgs{Type: "fs", Name: "fs", Parameters: [6]string{"/fileserver", "/volserver", "/salvager", "__NONOTIFIER__"}}

func TestProcessesAreListedAndChanged(t *testing.T) {
	ctx, c := t.Context(), newClient(afs.Anybody)
	if err := c.Create(ctx, fs); err != nil {
		t.Fatal(err)
	}
	if names, err := c.Processes(ctx); err != nil || !slices.Equal(names, []string{"fs"}) {
		t.Errorf("%v, %v", names, err)
	}
	if p, err := c.Parameters(ctx, "fs"); err != nil || !slices.Equal(p, fs.Parameters[:3]) {
		t.Errorf("%q, %v", p, err)
	}
	want := bos.Info{Type: "fs", Goal: bos.Running, FileGoal: bos.Running, Started: 1700000000, Starts: 1}
	if i, err := c.Info(ctx, "fs"); err != nil || i != want {
		t.Errorf("%+v, %v", i, err)
	}
	if err := c.Delete(ctx, "fs"); !errors.Is(err, bos.ErrBusy) {
		t.Errorf("it runs: %v", err)
	}
	if err := c.Set(ctx, "fs", bos.Down, true); err != nil {
		t.Error(err)
	}
	if i, err := c.Info(ctx, "fs"); err != nil || i.Goal != bos.Down || i.FileGoal != bos.Running || i.LastExit == 0 {
		t.Errorf("%+v, %v", i, err)
	}
	if s, err := c.State(ctx, "fs"); err != nil || s.Number != bos.Down {
		t.Errorf("%+v, %v", s, err)
	}
	if err := c.Delete(ctx, "fs"); err != nil {
		t.Error(err)
	}
	if names, err := c.Processes(ctx); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestMachineTellsItsCellUsersAndKeys(t *testing.T) {
	ctx, c := t.Context(), newClient(afs.Anybody)
	if cell, hosts, err := c.Cell(ctx); err != nil || cell != "rx.test" || !slices.Equal(hosts, []string{"db1", "db2"}) {
		t.Errorf("%s, %v, %v", cell, hosts, err)
	}
	if err := errors.Join(c.AddUser(ctx, "bob"), c.DeleteUser(ctx, "admin")); err != nil {
		t.Error(err)
	}
	if users, err := c.Users(ctx); err != nil || !slices.Equal(users, []string{"bob"}) {
		t.Errorf("%v, %v", users, err)
	}
	if keys, err := c.Keys(ctx); err != nil || len(keys) != 1 || keys[0].Version != 3 {
		t.Errorf("%v, %v", keys, err)
	}
	if d, err := c.Dates(ctx, "/x"); err != nil || d != (bos.Dates{}) {
		t.Errorf("%v, %v", d, err)
	}
}

func TestRefusedRequestsHaveTheServersCodes(t *testing.T) {
	ctx, c, nobody := t.Context(), newClient(afs.Anybody), newClient(nil)
	if err := c.Create(ctx, fs); err != nil {
		t.Fatal(err)
	}
	_, noInfo := c.Info(ctx, "x")
	_, noKeys := nobody.Keys(ctx)
	for i, tc := range []struct{ err, want error }{
		{c.Create(ctx, fs), bos.ErrExists},
		{c.Create(ctx, bos.CreateArgs{Type: "x", Name: "x"}), bos.ErrBadType},
		{c.Create(ctx, bos.CreateArgs{Type: "simple"}), bos.ErrNotMade},
		{c.Delete(ctx, "x"), bos.ErrNoEntry},
		{c.Set(ctx, "x", bos.Down, false), bos.ErrNoEntry},
		{c.Set(ctx, "fs", bos.StartingUp, false), afs.ErrInvalid},
		{c.AddUser(ctx, "admin"), afs.ErrExists},
		{c.DeleteUser(ctx, "x"), afs.ErrNoEntry},
		{noInfo, bos.ErrNoEntry},
		{noKeys, bos.ErrAccess},
		{nobody.Create(ctx, fs), bos.ErrAccess},
		{nobody.Delete(ctx, "fs"), bos.ErrAccess},
		{nobody.Set(ctx, "fs", bos.Down, true), bos.ErrAccess},
		{nobody.AddUser(ctx, "x"), bos.ErrAccess},
		{nobody.DeleteUser(ctx, "x"), bos.ErrAccess},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("case %d: %v; want %v", i, tc.err, tc.want)
		}
	}
}

// OpenAFS's tools and a real server have the same bytes for the same values.
func TestRecordedCallsDecode(t *testing.T) {
	seen := recorded.Calls{Port: afs.PortBos, Service: afs.ServiceBos}.Check(t, bos.Operations())
	recorded.Want(t, seen, "GetDates", "ListSUsers", "GetCellName", "GetCellHost")
}

func TestMessagesSurviveTheirEncoding(t *testing.T) { rpctest.RoundTrip(t, bos.Operations()) }

func FuzzMessages(f *testing.F) { rpctest.Fuzz(f, bos.Operations()) }

func ExampleClient() {
	m := bos.NewMachine(bos.MachineConfig{Cell: "example.com"})
	c := bos.NewClient(rpctest.Serve(bos.NewMux(m, bos.Config{})))
	_, err := c.State(context.Background(), "ptserver")
	fmt.Println(err)
	// Output: bos.GetStatus: no such process (BZNOENT, 39425)
}
