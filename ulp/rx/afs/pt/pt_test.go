package pt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/internal/recorded"
	"urnic/ulp/rx/afs/pt"
	"urnic/ulp/rx/rpc/rpctest"
	"urnic/ulp/rx/secure"
)

func newClient(db *pt.DB) *pt.Client {
	return pt.NewClient(rpctest.Serve(pt.NewMux(db, pt.Config{Admin: afs.Anybody, PartLen: 3})))
}

// need returns v, or ends the test.
func need[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestNewDatabaseHasTheSystemsGroups(t *testing.T) {
	c := newClient(pt.NewDB())
	names := need(c.IDsToNames(t.Context(), []int32{-101, -102, -203, -204, -205, 32766, 77}))(t)
	want := []string{"system:anyuser", "system:authuser", "system:ptsviewers", "system:administrators", "system:backup", "anonymous", "77"}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	ids := need(c.NamesToIDs(t.Context(), []string{"System:AnyUser", "nobody"}))(t)
	if !slices.Equal(ids, []int32{-101, 32766}) {
		t.Errorf("%v", ids)
	}
	if m := need(c.ListMax(t.Context()))(t); m != (pt.Maxima{User: 0, Group: -205}) {
		t.Errorf("%v", m)
	}
}

func TestUsersAndGroupsAreMadeListedAndDeleted(t *testing.T) {
	ctx, c := t.Context(), newClient(pt.NewDB())
	alice := need(c.CreateUser(ctx, "Alice", 0))(t)
	bob := need(c.CreateUser(ctx, "bob", 2060))(t)
	carol := need(c.CreateUser(ctx, "carol", 0))(t)
	friends := need(c.CreateGroup(ctx, "alice:friends", 0, alice))(t)
	staff := need(c.CreateGroup(ctx, "staff", -1000, pt.Administrators))(t)
	if alice != 1 || bob != 2060 || carol != 2061 || friends != -206 || staff != -1000 {
		t.Errorf("IDs %d %d %d %d %d", alice, bob, carol, friends, staff)
	}
	for _, u := range []int32{bob, alice} {
		if err := c.AddToGroup(ctx, u, friends); err != nil {
			t.Error(err)
		}
	}
	if got := need(c.Elements(ctx, friends))(t); !slices.Equal(got, []int32{alice, bob}) {
		t.Errorf("members %v", got)
	}
	if got := need(c.Elements(ctx, bob))(t); !slices.Equal(got, []int32{friends}) {
		t.Errorf("groups %v", got)
	}
	if yes := need(c.IsMember(ctx, bob, friends))(t); !yes {
		t.Error("not a member")
	}
	if got := need(c.CPS(ctx, bob))(t); !slices.Equal(got, []int32{friends, pt.AuthUser, pt.AnyUser, bob}) {
		t.Errorf("CPS %v", got)
	}
	if got := need(c.Owned(ctx, alice))(t); !slices.Equal(got, []int32{friends}) {
		t.Errorf("owned %v", got)
	}
	e := need(c.Entry(ctx, friends))(t)
	if want := (pt.Entry{Flags: 0x90, ID: friends, Owner: alice, Creator: pt.Anonymous, Count: 2, Name: "alice:friends"}); e != want {
		t.Errorf("%+v; want %+v", e, want)
	}
	if err := c.RemoveFromGroup(ctx, bob, friends); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, alice); err != nil {
		t.Error(err)
	}
	if got := need(c.Elements(ctx, friends))(t); len(got) != 0 {
		t.Errorf("members are left: %v", got)
	}
	if got := need(c.Owned(ctx, 0))(t); !slices.Equal(got, []int32{friends}) {
		t.Errorf("orphans %v", got)
	}
	var names []string
	for _, e := range need(c.Entries(ctx, pt.Users|pt.Groups))(t) {
		names = append(names, e.Name)
	}
	want := "system:administrators system:backup system:anyuser system:authuser system:ptsviewers anonymous bob carol alice:friends staff"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if users := need(c.Entries(ctx, pt.Users))(t); len(users) != 3 {
		t.Errorf("%v", users)
	}
}

func TestEntriesAreChanged(t *testing.T) {
	ctx, c := t.Context(), newClient(pt.NewDB())
	alice, bob := need(c.CreateUser(ctx, "alice", 0))(t), need(c.CreateUser(ctx, "bob", 0))(t)
	group := need(c.CreateGroup(ctx, "alice:friends", 0, alice))(t)
	if err := c.AddToGroup(ctx, bob, group); err != nil {
		t.Fatal(err)
	}
	if err := c.Change(ctx, group, "", bob, 0); err != nil { // a new owner gives its name
		t.Fatal(err)
	}
	if e := need(c.Entry(ctx, group))(t); e.Name != "bob:friends" || e.Owner != bob {
		t.Errorf("%+v", e)
	}
	if err := c.Change(ctx, bob, "robert", 0, 500); err != nil {
		t.Fatal(err)
	}
	if got := need(c.Elements(ctx, group))(t); !slices.Equal(got, []int32{500}) {
		t.Errorf("members %v", got)
	}
	if e := need(c.Entry(ctx, group))(t); e.Owner != 500 {
		t.Errorf("%+v", e)
	}
	if ids := need(c.NamesToIDs(ctx, []string{"bob", "robert"}))(t); !slices.Equal(ids, []int32{pt.Anonymous, 500}) {
		t.Errorf("%v", ids)
	}
	if err := c.SetFields(ctx, pt.FieldsArgs{ID: 500, Mask: pt.SetGroupQuota | 0xff, Flags: 0x20, GroupQuota: 7}); err != nil {
		t.Fatal(err)
	}
	if e := need(c.Entry(ctx, 500))(t); e.GroupQuota != 7 || e.Flags != 0x20 || e.ForeignQuota != 20 {
		t.Errorf("%+v", e)
	}
	if err := errors.Join(c.SetMax(ctx, 9000, false), c.SetMax(ctx, -9000, true)); err != nil {
		t.Fatal(err)
	}
	if id := need(c.CreateUser(ctx, "dave", 0))(t); id != 9001 {
		t.Errorf("%d", id)
	}
}

func TestRefusedRequestsHaveTheServersCodes(t *testing.T) {
	ctx, c := t.Context(), newClient(pt.NewDB())
	alice := need(c.CreateUser(ctx, "alice", 0))(t)
	group := need(c.CreateGroup(ctx, "alice:g", 0, alice))(t)
	if err := c.AddToGroup(ctx, alice, group); err != nil {
		t.Fatal(err)
	}
	entry := func(_ pt.Entry, err error) error { return err }
	id := func(_ int32, err error) error { return err }
	for i, tc := range []struct {
		err  error
		want error
	}{
		{id(c.CreateUser(ctx, "alice", 0)), pt.ErrNameExists},
		{id(c.CreateUser(ctx, "other", alice)), pt.ErrIDExists},
		{id(c.CreateUser(ctx, "a:b", 0)), pt.ErrBadName},
		{id(c.CreateUser(ctx, "", 0)), pt.ErrBadName},
		{id(c.CreateUser(ctx, "a@cell", 0)), pt.ErrBadName},
		{id(c.CreateUser(ctx, strings.Repeat("x", 64), 0)), pt.ErrBadName},
		{id(c.CreateGroup(ctx, "bob:g", 0, alice)), pt.ErrBadName},
		{id(c.CreateGroup(ctx, "alice:g:h", 0, alice)), pt.ErrBadName},
		{entry(c.Entry(ctx, 4711)), pt.ErrNoEntry},
		{c.Delete(ctx, 4711), pt.ErrNoEntry},
		{c.Delete(ctx, pt.Administrators), pt.ErrPermission},
		{c.AddToGroup(ctx, alice, group), pt.ErrIDExists},
		{c.AddToGroup(ctx, alice, alice), pt.ErrNotGroup},
		{c.AddToGroup(ctx, group, group), pt.ErrNotUser},
		{c.AddToGroup(ctx, alice, pt.AnyUser), pt.ErrPermission},
		{c.RemoveFromGroup(ctx, alice, pt.Backup), pt.ErrNoEntry},
		{c.Change(ctx, alice, "", 0, -5), pt.ErrPermission},
		{c.Change(ctx, alice, "", 0, pt.Anonymous), pt.ErrIDExists},
		{c.Change(ctx, group, "alice:", 0, 0), nil},
		{c.Change(ctx, alice, "anonymous", 0, 0), pt.ErrNameExists},
		{c.SetFields(ctx, pt.FieldsArgs{ID: alice, Mask: pt.SetGroupQuota, GroupQuota: -1}), pt.ErrBadArgument},
		{c.SetMax(ctx, -1, false), pt.ErrBadArgument},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("case %d: %v; want %v", i, tc.err, tc.want)
		}
	}
}

func TestOnlyAdministratorsChangeTheDatabase(t *testing.T) {
	db := pt.NewDB()
	mux := pt.NewMux(db, pt.Config{Cell: "cell", Admin: func(c secure.Caller) bool { return c.Verified && c.Name == "admin" }})
	as := func(c secure.Caller) *pt.Client { return pt.NewClient(rpctest.As(mux, c)) }
	ctx := t.Context()
	nobody := as(secure.Caller{Name: "admin"})
	_, err1 := nobody.CreateUser(ctx, "x", 0)
	_, err2 := nobody.CreateUser(ctx, "x", 5)
	_, err3 := nobody.Entries(ctx, pt.Users)
	for _, err := range []error{err1, err2, err3, nobody.Delete(ctx, -205), nobody.SetMax(ctx, 5, false)} {
		if !errors.Is(err, pt.ErrPermission) || !strings.HasPrefix(err.Error(), "pt.") {
			t.Errorf("%v", err)
		}
	}
	admin := as(secure.Caller{Name: "admin", Realm: "CELL", Verified: true})
	id := need(admin.CreateUser(ctx, "admin", 0))(t)
	group := need(admin.CreateGroup(ctx, "admin:mine", 0, 0))(t)
	if e := need(admin.Entry(ctx, group))(t); e.Owner != id || e.Creator != id {
		t.Errorf("%+v is not owned by its creator", e)
	}
	if got := need(nobody.NamesToIDs(ctx, []string{"admin@Cell", "admin@else"}))(t); !slices.Equal(got, []int32{id, pt.Anonymous}) {
		t.Errorf("%v", got)
	}
}

// OpenAFS's tools and a real server have the same bytes for the same values.
func TestRecordedCallsDecode(t *testing.T) {
	seen := recorded.Calls{Port: afs.PortPT, Service: afs.ServicePT}.Check(t, pt.Operations())
	recorded.Want(t, seen, "ListMax")
}

func TestMessagesSurviveTheirEncoding(t *testing.T) { rpctest.RoundTrip(t, pt.Operations()) }

func FuzzMessages(f *testing.F) { rpctest.Fuzz(f, pt.Operations()) }

func ExampleClient() {
	db := pt.NewDB()
	users := pt.NewClient(rpctest.Serve(pt.NewMux(db, pt.Config{Admin: afs.Anybody}))) // or rpc.Over(conn.Begin)
	ctx := context.Background()
	id, err := users.CreateUser(ctx, "alice", 0)
	fmt.Println(id, err)
	_, err = users.Entry(ctx, 4711)
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// pt.ListEntry: no such user or group (PRNOENT, 267268)
}
