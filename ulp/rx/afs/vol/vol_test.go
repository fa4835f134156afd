package vol_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/internal/recorded"
	"urnic/ulp/rx/afs/vol"
	"urnic/ulp/rx/rpc/rpctest"
	"urnic/ulp/rx/secure"
)

func clientOf(s *vol.Store) *vol.Client {
	return vol.NewClient(rpctest.Serve(vol.NewMux(s, vol.Config{Admin: afs.Anybody})))
}

func newClient() *vol.Client {
	return clientOf(vol.NewStore(vol.StoreConfig{Partitions: []int32{2, 0}}))
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

// create makes a volume, and fails the test if it can't.
func create(t *testing.T, c *vol.Client, name string, id uint32) *vol.Transaction {
	t.Helper()
	trans, _, err := c.Create(t.Context(), vol.CreateArgs{Name: name, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return trans
}

func TestDumpReturnsWhatWasRestored(t *testing.T) {
	ctx, c := t.Context(), newClient()
	data := bytes.Repeat([]byte("a dump of some length "), 100000) // 2.2 MB
	trans := create(t, c, "vol", 0x20000010)
	cookie := vol.Cookie{Name: "restored", Parent: 0x20000010}
	if n := must(trans.Restore(ctx, cookie, bytes.NewReader(data)))(t); n != int64(len(data)) {
		t.Errorf("%d bytes were restored", n)
	}
	if err := errors.Join(trans.SetFlags(ctx, 0), trans.End(ctx)); err != nil {
		t.Fatal(err)
	}
	trans = must(c.Begin(ctx, 0x20000010, 0, vol.Busy))(t)
	var got bytes.Buffer
	n := must(trans.Dump(ctx, 0, &got))(t)
	if n != int64(len(data)) || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes were dumped, which differ from %d", n, len(data))
	}
	if size := must(trans.Size(ctx, 0))(t); size != uint64(len(data)) {
		t.Errorf("size %d", size)
	}
	i := must(c.Volume(ctx, 0, 0x20000010))(t)
	if i.Name != "restored" || i.Status != vol.OK || i.InUse != 1 || i.Size != 2149 {
		t.Errorf("%+v", i)
	}
}

func TestNewVolumeHasAnEmptyDump(t *testing.T) {
	ctx, c := t.Context(), newClient()
	trans := create(t, c, "vol", 77)
	var got bytes.Buffer
	must(trans.Dump(ctx, 0, &got))(t)
	p := got.Bytes()
	if len(p) < 20 || p[0] != 1 || binary.BigEndian.Uint32(p[1:]) != 0xB3A11322 || binary.BigEndian.Uint32(p[len(p)-4:]) != 0x3A214B6E {
		t.Errorf("%x", p)
	}
	if !bytes.Contains(p, []byte("nvol\x00")) {
		t.Errorf("no name in %x", p)
	}
}

func TestVolumesAreListed(t *testing.T) {
	ctx, c := t.Context(), newClient()
	if got := must(c.Partitions(ctx))(t); !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("partitions %v", got)
	}
	for id := range uint32(3) {
		trans := create(t, c, fmt.Sprint("vol", id), 100-id)
		if err := trans.End(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if ids := must(c.ListIDs(ctx, 0))(t); !slices.Equal(ids, []uint32{98, 99, 100}) {
		t.Errorf("%v", ids)
	}
	all := must(c.List(ctx, 0))(t)
	if len(all) != 3 || all[0].Name != "vol2" || all[0].Quota != 5000 || all[0].Status != vol.OK || all[0].InUse != 0 {
		t.Errorf("%+v", all)
	}
	if x := must(c.ListExtended(ctx, 0))(t); len(x) != 3 || x[2].Name != "vol0" {
		t.Errorf("%+v", x)
	}
	if x := must(c.VolumeExtended(ctx, 0, 99))(t); x.Name != "vol1" {
		t.Errorf("%+v", x)
	}
	if p := must(c.Partition(ctx, 2))(t); p.Name != "/vicepc" || p.Size == 0 || p.Free != p.Size {
		t.Errorf("%+v", p)
	}
	if err := c.Nuke(ctx, 0, 99); err != nil {
		t.Error(err)
	}
	if _, err := c.Volume(ctx, 0, 99); !errors.Is(err, afs.ErrNoDevice) {
		t.Errorf("%v", err)
	}
}

func TestTransactionsExcludeEachOtherAndExpire(t *testing.T) {
	now := time.Unix(1700000000, 0)
	ctx, c := t.Context(), clientOf(vol.NewStore(vol.StoreConfig{Now: func() time.Time { return now }}))
	first := create(t, c, "vol", 100)
	if _, err := c.Begin(ctx, 100, 0, vol.Offline); !errors.Is(err, vol.ErrVolumeBusy) {
		t.Errorf("a second transaction: %v", err)
	}
	all := must(c.Transactions(ctx))(t)
	want := vol.TransactionInfo{
		ID: first.ID, Used: 1700000000, Began: 1700000000, Volume: 100, Access: int16(vol.Offline), VolumeFlags: 1, Procedure: "CreateVolume",
	}
	if len(all) != 1 || all[0] != want {
		t.Errorf("%+v", all)
	}
	now = now.Add(time.Hour)
	second := must(c.Begin(ctx, 100, 0, vol.Offline))(t)
	if err := first.End(ctx); !errors.Is(err, afs.ErrNoEntry) {
		t.Errorf("the old one: %v", err)
	}
	if err := second.End(ctx); err != nil {
		t.Error(err)
	}
}

func TestTransactionChangesItsVolume(t *testing.T) {
	ctx, c := t.Context(), newClient()
	trans := create(t, c, "vol", 100)
	if f := must(trans.Flags(ctx))(t); f != vol.DeleteOnSalvage {
		t.Errorf("flags %#x", f)
	}
	info := vol.Unchanged()
	info.Quota, info.Updated = 12345, 1700000001
	if err := errors.Join(
		trans.SetIDs(ctx, vol.IDsArgs{Name: "new", Type: vol.ReadOnly, Parent: 99, CloneID: 101, Backups: 102}),
		trans.SetDate(ctx, 1600000000), trans.SetInfo(ctx, info), trans.SetFlags(ctx, 0),
	); err != nil {
		t.Fatal(err)
	}
	if name := must(trans.Name(ctx))(t); name != "new" {
		t.Errorf("%q", name)
	}
	st := must(trans.Status(ctx))(t)
	want := vol.Status{
		ID: 100, NextUnique: 1, Type: vol.ReadOnly, ParentID: 99, CloneID: 101, BackupID: 102, Quota: 12345,
		Created: 1600000000, Updated: 1700000001, Copied: st.Copied,
	}
	if st != want {
		t.Errorf("%+v; want %+v", st, want)
	}
	if err := trans.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := trans.Name(ctx); !errors.Is(err, vol.ErrNoSuchVolume) {
		t.Errorf("a deleted volume: %v", err)
	}
	if err := trans.End(ctx); err != nil {
		t.Error(err)
	}
}

func TestClonesHaveTheVolumesContent(t *testing.T) {
	ctx, c := t.Context(), newClient()
	trans := create(t, c, "vol", 100)
	must(trans.Restore(ctx, vol.Cookie{}, strings.NewReader("one")))(t)
	if id := must(trans.Clone(ctx, vol.CloneArgs{Type: vol.Backup, Name: "vol.backup", ID: 102}))(t); id != 102 {
		t.Errorf("ID %d", id)
	}
	must(trans.Restore(ctx, vol.Cookie{}, strings.NewReader("two")))(t)
	dump := func() string {
		clone := must(c.Begin(ctx, 102, 0, vol.ReadOnlyAccess))(t)
		var b strings.Builder
		must(clone.Dump(ctx, 0, &b))(t)
		if err := clone.End(ctx); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	if got := dump(); got != "one" {
		t.Errorf("the clone has %q", got)
	}
	if err := trans.ReClone(ctx, 102); err != nil {
		t.Fatal(err)
	}
	if got := dump(); got != "two" {
		t.Errorf("the new clone has %q", got)
	}
	if i := must(c.Volume(ctx, 0, 100))(t); i.BackupID != 102 || i.BackedUp == 0 {
		t.Errorf("%+v", i)
	}
}

func TestDumpsAreLimited(t *testing.T) {
	ctx, c := t.Context(), clientOf(vol.NewStore(vol.StoreConfig{MaxBytes: 1000}))
	trans := create(t, c, "vol", 100)
	for range 3 { // a failed one leaves room
		if _, err := trans.Restore(ctx, vol.Cookie{}, bytes.NewReader(make([]byte, 1001))); !errors.Is(err, afs.ErrDiskFull) {
			t.Fatalf("%v", err)
		}
	}
	must(trans.Restore(ctx, vol.Cookie{}, bytes.NewReader(make([]byte, 600))))(t)
	if _, err := trans.Clone(ctx, vol.CloneArgs{Name: "clone"}); !errors.Is(err, afs.ErrDiskFull) {
		t.Errorf("%v", err)
	}
	if err := trans.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	other := create(t, c, "other", 200)
	must(other.Restore(ctx, vol.Cookie{}, bytes.NewReader(make([]byte, 1000))))(t)
	if err := trans.End(ctx); !errors.Is(err, vol.ErrFailed) { // the error that it met
		t.Errorf("%v", err)
	}
}

func TestRefusedRequestsHaveTheServersCodes(t *testing.T) {
	ctx, c := t.Context(), newClient()
	trans := create(t, c, "vol", 100)
	begin := func(_ *vol.Transaction, err error) error { return err }
	make1 := func(_ *vol.Transaction, _ uint32, err error) error { return err }
	none := c.Attach(4711)
	_, noPartition := c.List(ctx, 1)
	_, noDump := none.Dump(ctx, 0, io.Discard)
	_, noName := c.Partition(ctx, 1)
	for i, tc := range []struct{ err, want error }{
		{begin(c.Begin(ctx, 4711, 0, 1)), afs.ErrNoVolume},
		{begin(c.Begin(ctx, 100, 1, 1)), vol.ErrIllegalPartition},
		{make1(c.Create(ctx, vol.CreateArgs{Name: "vol", ID: 100})), afs.ErrVolumeExists},
		{make1(c.Create(ctx, vol.CreateArgs{Name: strings.Repeat("x", 32)})), vol.ErrBadName},
		{make1(c.Create(ctx, vol.CreateArgs{Name: "x", Type: 3})), vol.ErrBadOperation},
		{make1(c.Create(ctx, vol.CreateArgs{Name: "x", Partition: 5})), vol.ErrIllegalPartition},
		{trans.SetIDs(ctx, vol.IDsArgs{Name: "a/b"}), vol.ErrBadName},
		{trans.ReClone(ctx, 100), vol.ErrBadOperation},
		{trans.ReClone(ctx, 101), afs.ErrNoVolume},
		{none.End(ctx), afs.ErrNoEntry},
		{c.Nuke(ctx, 0, 4711), afs.ErrNoDevice},
		{noPartition, vol.ErrIllegalPartition},
		{noName, vol.ErrIllegalPartition},
		{noDump, afs.ErrNoEntry},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("case %d: %v; want %v", i, tc.err, tc.want)
		}
	}
}

func TestOnlyAdministratorsHaveTransactions(t *testing.T) {
	ctx := t.Context()
	mux := vol.NewMux(vol.NewStore(vol.StoreConfig{}), vol.Config{Admin: func(c secure.Caller) bool { return c.Name == "admin" }})
	nobody, admin := vol.NewClient(rpctest.Serve(mux)), vol.NewClient(rpctest.As(mux, secure.Caller{Name: "admin"}))
	trans := create(t, admin, "vol", 100)
	theirs := nobody.Attach(trans.ID)
	_, err1 := nobody.Begin(ctx, 100, 0, vol.Busy)
	_, err2 := theirs.Dump(ctx, 0, io.Discard)
	_, err3 := theirs.Restore(ctx, vol.Cookie{}, strings.NewReader("x"))
	for _, err := range []error{err1, err2, err3, theirs.End(ctx), nobody.Nuke(ctx, 0, 100), nobody.SignalRestore(ctx, vol.SignalArgs{})} {
		if !errors.Is(err, vol.ErrAccess) {
			t.Errorf("%v", err)
		}
	}
	must(nobody.List(ctx, 0))(t)
	if err := errors.Join(admin.SignalRestore(ctx, vol.SignalArgs{}), trans.End(ctx)); err != nil {
		t.Error(err)
	}
}

func TestPartitionsHaveNames(t *testing.T) {
	for n, want := range map[int32]string{0: "/vicepa", 25: "/vicepz", 26: "/vicepaa", 52: "/vicepba", 254: "/vicepiu", 255: "partition 255"} {
		if got := vol.PartitionName(n); got != want {
			t.Errorf("%d: %s; want %s", n, got, want)
		}
	}
}

// OpenAFS's tools and a real server have the same bytes for the same values.
func TestRecordedCallsDecode(t *testing.T) {
	seen := recorded.Calls{Port: afs.PortVolume, Service: afs.ServiceVolume, Data: vol.Split()}.Check(t, vol.Operations())
	recorded.Want(t, seen, "CreateVolume", "TransCreate", "EndTrans", "SetFlags", "GetStatus", "ListVolumes", "ListOneVolume", "Monitor",
		"SetIdsTypes", "SetDate", "SetInfo", "Clone", "XListPartitions", "PartitionInfo64", "GetSize")
}

// A request of vos restore, served, restores a volume that dumps the same bytes.
func TestRecordedRestoreIsServed(t *testing.T) {
	request := recorded.First(t, "vos-restore-100k-auth.pcap", afs.ServiceVolume, 102).Args
	store := vol.NewStore(vol.StoreConfig{})
	c := clientOf(store)
	trans := create(t, c, "vol", 100)
	client, server := rpctest.Pair()
	go rpctest.Carry(t.Context(), vol.NewMux(store, vol.Config{Admin: afs.Anybody}).Serve, server)
	binary.BigEndian.PutUint32(request, uint32(trans.ID))
	for _, p := range [][]byte{{0, 0, 0, 102}, request} {
		if _, err := client.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	client.CloseWrite()
	if p, err := io.ReadAll(client); err != nil || len(p) != 0 {
		t.Fatalf("%x, %v", p, err)
	}
	var got bytes.Buffer
	must(trans.Dump(t.Context(), 0, &got))(t)
	const args = 4 + 4 + 4*32 + 3*4
	if !bytes.Equal(got.Bytes(), request[args:]) || got.Len() < 100000 {
		t.Errorf("%d bytes; want %d", got.Len(), len(request)-args)
	}
	if name := must(trans.Name(t.Context()))(t); name == "vol" {
		t.Error("the volume has no new name")
	}
}

func TestMessagesSurviveTheirEncoding(t *testing.T) {
	rpctest.RoundTrip(t, vol.Operations(), func(structure any) {
		if x, ok := structure.(*vol.XInfo); ok { // has less of an Info
			x.NeedsSalvage, x.DestroyMe, x.Flags, x.MinQuota, x.WeekUse, x.Spare = 0, 0, 0, 0, 0, [2]int32{}
		}
	})
}

func FuzzMessages(f *testing.F) { rpctest.Fuzz(f, vol.Operations()) }

func ExampleTransaction() {
	volumes := vol.NewClient(rpctest.Serve(vol.NewMux(vol.NewStore(vol.StoreConfig{}), vol.Config{Admin: afs.Anybody})))
	ctx := context.Background()
	t, id, err := volumes.Create(ctx, vol.CreateArgs{Name: "home", ID: 536870912})
	if err != nil {
		panic(err)
	}
	n, err := t.Restore(ctx, vol.Cookie{Name: "home"}, strings.NewReader("what vos dump has written"))
	fmt.Println(id, n, err)
	fmt.Println(t.SetFlags(ctx, 0), t.End(ctx)) // on-line
	// Output:
	// 536870912 25 <nil>
	// <nil> <nil>
}
