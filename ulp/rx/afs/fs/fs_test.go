package fs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/fs"
	"urnic/ulp/rx/afs/internal/recorded"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rpc/rpctest"
)

const (
	volume   = 100
	readOnly = 101
)

var root = afs.FID{Volume: volume, Vnode: 1, Unique: 1}

// from is a call from an address.
type from struct {
	*rpctest.Call
	addr netip.AddrPort
}

func (f from) Peer() netip.AddrPort { return f.addr }

// clientAt returns a client that calls from a port.
func clientAt(s *fs.Server, port uint16) *fs.Client {
	mux := fs.NewMux(s)
	return fs.NewClient(func(ctx context.Context) (rpc.Call, error) {
		client, server := rpctest.Pair()
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
		go rpctest.Carry(ctx, func(ctx context.Context, _ io.ReadWriter) error { return mux.Serve(ctx, from{server, addr}) }, server)
		return client, nil
	})
}

func newServer(t *testing.T, c fs.Config) *fs.Server {
	t.Helper()
	s := fs.NewServer(c)
	if err := errors.Join(
		s.AddVolume(fs.VolumeConfig{ID: volume, Name: "vol", Rights: fs.All, MaxBytes: 1 << 20}),
		s.AddVolume(fs.VolumeConfig{ID: readOnly, Name: "vol.readonly", ReadOnly: true}),
	); err != nil {
		t.Fatal(err)
	}
	return s
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

// read returns a file's content.
func read(t *testing.T, c *fs.Client, f afs.FID, offset, length int64) string {
	t.Helper()
	var b strings.Builder
	if _, _, err := c.Fetch(t.Context(), f, offset, length, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// names returns the names in a directory.
func names(t *testing.T, c *fs.Client, d afs.FID) []string {
	t.Helper()
	var all []string
	for _, e := range must(c.ReadDir(t.Context(), d))(t) {
		all = append(all, e.Name)
	}
	return all
}

func TestFilesOfAVolumeAreRead(t *testing.T) {
	ctx, s := t.Context(), newServer(t, fs.Config{})
	f := must(s.Put(readOnly, "a/b/hello", []byte("hello, world")))(t)
	must(s.PutLink(readOnly, "a/link", "b/hello"))(t)
	mount := must(s.PutMount(readOnly, "other", "root.cell"))(t)
	c := clientAt(s, 1)
	if got := names(t, c, afs.FID{Volume: readOnly, Vnode: 1, Unique: 1}); !slices.Equal(got, []string{".", "..", "a", "other"}) {
		t.Errorf("%q", got)
	}
	if got := read(t, c, f, 0, 100); got != "hello, world" {
		t.Errorf("%q", got)
	}
	if got := read(t, c, f, 7, 3); got != "wor" {
		t.Errorf("%q", got)
	}
	if got := read(t, c, f, 100, 3); got != "" {
		t.Errorf("behind the end: %q", got)
	}
	if got := read(t, c, mount, 0, 100); got != "#root.cell." {
		t.Errorf("%q", got)
	}
	p := must(c.Status(ctx, f))(t)
	if st := p.Status; st.Type != fs.File || st.Length != 12 || st.Links != 1 || st.CallerAccess != fs.ReadOnly || p.Callback.Expires == 0 {
		t.Errorf("%+v", p)
	}
	all := must(c.Statuses(ctx, []afs.FID{f, {Volume: 7}, {Volume: readOnly, Vnode: 99}}))(t)
	if len(all) != 3 || all[0].Length != 12 || all[1].Code != afs.ErrNoVolume.Number || all[2].Code != afs.ErrNoVnode.Number {
		t.Errorf("%+v", all)
	}
	if v := must(c.Volume(ctx, readOnly))(t); v.Name != "vol.readonly" || v.Type != 0 || v.Online != 1 {
		t.Errorf("%+v", v)
	}
	if w := must(c.Capabilities(ctx))(t); !slices.Equal(w, []uint32{3}) {
		t.Errorf("%v", w)
	}
	if acl := must(c.ACL(ctx, afs.FID{Volume: readOnly, Vnode: 1, Unique: 1}))(t); !strings.Contains(acl, "system:anyuser\t9\n") {
		t.Errorf("%q", acl)
	}
	must(c.Time(ctx))(t)
}

func TestFilesAreWritten(t *testing.T) {
	ctx, s := t.Context(), newServer(t, fs.Config{})
	c := clientAt(s, 1)
	made := must(c.Create(ctx, root, "file", fs.StoreStatus{Mask: fs.SetMode, Mode: 0o600}))(t)
	if made.File.Mode != 0o600 || made.File.ParentVnode != 1 {
		t.Errorf("%+v", made)
	}
	data := bytes.Repeat([]byte("x"), 300000)
	st := must(c.Store(ctx, made.FID, 0, uint64(len(data)), uint64(len(data)), bytes.NewReader(data)))(t)
	if st.Length != 300000 || st.DataVersion != made.File.DataVersion+1 {
		t.Errorf("%+v", st)
	}
	must(c.Store(ctx, made.FID, 2, 3, 10, strings.NewReader("abc")))(t)
	if got := read(t, c, made.FID, 0, 100); got != "xxabcxxxxx" {
		t.Errorf("%q", got)
	}
	must(c.Store(ctx, made.FID, 12, 1, 13, strings.NewReader("!")))(t)
	if got := read(t, c, made.FID, 0, 100); got != "xxabcxxxxx\x00\x00!" {
		t.Errorf("%q", got)
	}
	if _, err := c.Store(ctx, made.FID, 0, 0, 2<<20, strings.NewReader("")); !errors.Is(err, afs.ErrOverQuota) {
		t.Errorf("more than the volume may have: %v", err)
	}
	if st := must(c.SetStatus(ctx, made.FID, fs.StoreStatus{Mask: fs.SetModified, Modified: 5}))(t); st.Modified != 5 {
		t.Errorf("%+v", st)
	}
}

func TestNamesAreMadeMovedAndRemoved(t *testing.T) {
	ctx, s := t.Context(), newServer(t, fs.Config{})
	c := clientAt(s, 1)
	d1, d2 := must(c.MakeDir(ctx, root, "d1", fs.StoreStatus{}))(t).FID, must(c.MakeDir(ctx, root, "d2", fs.StoreStatus{}))(t).FID
	sub := must(c.MakeDir(ctx, d1, "sub", fs.StoreStatus{}))(t).FID
	file := must(c.Create(ctx, d1, "file", fs.StoreStatus{}))(t).FID
	must(c.Symlink(ctx, d1, "link", "file", fs.StoreStatus{}))(t)
	if err := errors.Join(
		c.Link(ctx, d1, "hard", file),
		c.Rename(ctx, d1, "sub", d2, "moved"),
		c.Rename(ctx, d1, "file", d1, "hard"), // the same file: nothing happens
		c.Remove(ctx, d1, "link"),
	); err != nil {
		t.Fatal(err)
	}
	if got := names(t, c, d1); !slices.Equal(got, []string{".", "..", "file", "hard"}) {
		t.Errorf("%q", got)
	}
	if st := must(c.Status(ctx, file))(t).Status; st.Links != 2 {
		t.Errorf("%+v", st)
	}
	entries := must(c.ReadDir(ctx, sub))(t)
	if entries[1].Vnode != d2.Vnode {
		t.Errorf("%v after it was moved", entries)
	}
	if st := must(c.Status(ctx, d1))(t).Status; st.Links != 2 {
		t.Errorf("links of d1: %d", st.Links)
	}
	for i, tc := range []struct{ err, want error }{
		{c.RemoveDir(ctx, root, "d2"), fs.ErrNotEmpty},
		{c.Remove(ctx, root, "d2"), fs.ErrIsDirectory},
		{c.RemoveDir(ctx, d1, "file"), fs.ErrNotDirectory},
		{c.Remove(ctx, d1, "none"), fs.ErrNoEntry},
		{c.RemoveDir(ctx, d1, ".."), fs.ErrInvalid},
		{c.Rename(ctx, root, "d2", sub, "x"), fs.ErrInvalid}, // into itself
		{c.Rename(ctx, root, "d1", root, "a/b"), fs.ErrInvalid},
		{c.Link(ctx, d2, "x", file), fs.ErrCrossDevice},
		{c.Link(ctx, d1, "x", d2), fs.ErrIsDirectory},
		{c.Link(ctx, d1, "file", file), fs.ErrExists},
		{c.Remove(ctx, file, "x"), fs.ErrNotDirectory},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("case %d: %v; want %v", i, tc.err, tc.want)
		}
	}
	if err := errors.Join(c.Remove(ctx, d1, "file"), c.Remove(ctx, d1, "hard"), c.RemoveDir(ctx, root, "d1")); err != nil {
		t.Error(err)
	}
	if _, err := c.Status(ctx, file); !errors.Is(err, afs.ErrNoVnode) {
		t.Errorf("a removed file: %v", err)
	}
}

func TestReadOnlyVolumesAndStrangersChangeNothing(t *testing.T) {
	ctx, s := t.Context(), newServer(t, fs.Config{})
	if err := s.AddVolume(fs.VolumeConfig{ID: 102, Name: "private", Rights: fs.ReadOnly}); err != nil {
		t.Fatal(err)
	}
	c := clientAt(s, 1)
	for id, want := range map[uint32]error{readOnly: fs.ErrReadOnly, 102: fs.ErrAccess} {
		d := afs.FID{Volume: id, Vnode: 1, Unique: 1}
		_, err1 := c.Create(ctx, d, "x", fs.StoreStatus{})
		_, err2 := c.MakeDir(ctx, d, "x", fs.StoreStatus{})
		_, err3 := c.SetStatus(ctx, d, fs.StoreStatus{})
		_, err4 := c.Store(ctx, d, 0, 1, 1, strings.NewReader("x"))
		for _, err := range []error{err1, err2, err3, err4, c.Remove(ctx, d, "x")} {
			if !errors.Is(err, want) {
				t.Errorf("volume %d: %v; want %v", id, err, want)
			}
		}
	}
}

func TestPromisesAreKept(t *testing.T) {
	ctx := t.Context()
	now := time.Unix(1700000000, 0)
	var told []string
	s := newServer(t, fs.Config{
		Now: func() time.Time { return now },
		Break: func(_ context.Context, c netip.AddrPort, files []afs.FID) {
			told = append(told, fmt.Sprint(c.Port(), files))
		},
	})
	writer, reader, other := clientAt(s, 1), clientAt(s, 2), clientAt(s, 3)
	f := must(writer.Create(ctx, root, "file", fs.StoreStatus{}))(t).FID
	write := func() {
		t.Helper()
		must(writer.Store(ctx, f, 0, 1, 1, strings.NewReader("x")))(t)
	}
	for _, c := range []*fs.Client{writer, reader, other} {
		if p := must(c.Status(ctx, f))(t); p.Callback.Type != afs.CallbackShared || p.Callback.Expires != 3600 {
			t.Errorf("%+v", p.Callback)
		}
	}
	if err := other.GiveUp(ctx, []afs.FID{f}); err != nil {
		t.Fatal(err)
	}
	write()
	if want := []string{fmt.Sprint(2, []afs.FID{f})}; !slices.Equal(told, want) {
		t.Errorf("%q; want %q", told, want)
	}
	write() // the reader knows
	must(reader.Status(ctx, f))(t)
	now = now.Add(2 * time.Hour)
	write() // the promise has expired
	must(reader.Status(ctx, f))(t)
	if err := reader.GiveUpAll(ctx); err != nil {
		t.Fatal(err)
	}
	write()
	if len(told) != 1 {
		t.Errorf("%q", told)
	}
}

func TestLocksExclude(t *testing.T) {
	ctx := t.Context()
	now := time.Unix(1700000000, 0)
	c := clientAt(newServer(t, fs.Config{Now: func() time.Time { return now }}), 1)
	f := must(c.Create(ctx, root, "file", fs.StoreStatus{}))(t).FID
	if err := errors.Join(c.Lock(ctx, f, fs.LockRead), c.Lock(ctx, f, fs.LockRead)); err != nil {
		t.Fatal(err)
	}
	if err := c.Lock(ctx, f, fs.LockWrite); !errors.Is(err, fs.ErrLocked) {
		t.Error(err)
	}
	if err := errors.Join(c.Unlock(ctx, f), c.Unlock(ctx, f), c.Lock(ctx, f, fs.LockWrite)); err != nil {
		t.Error(err)
	}
	if err := c.Lock(ctx, f, fs.LockRead); !errors.Is(err, fs.ErrLocked) {
		t.Error(err)
	}
	now = now.Add(time.Hour)
	if err := c.Lock(ctx, f, fs.LockRead); err != nil {
		t.Errorf("after an hour: %v", err)
	}
}

// A client may announce much and send it slowly: what all announce together is bounded.
func TestDataThatIsReceivedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), newServer(t, fs.Config{})
		if err := s.AddVolume(fs.VolumeConfig{ID: 103, Name: "large", Rights: fs.All, MaxBytes: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		c := clientAt(s, 1)
		f := must(c.Create(ctx, afs.FID{Volume: 103, Vnode: 1, Unique: 1}, "f", fs.StoreStatus{}))(t).FID
		const much = 200 << 20
		r, w := io.Pipe()
		first := make(chan error)
		go func() {
			_, err := c.Store(ctx, f, 0, much, much, r)
			first <- err
		}()
		synctest.Wait()
		if _, err := c.Store(ctx, f, 0, much, much, bytes.NewReader(make([]byte, 1<<20))); !errors.Is(err, afs.ErrBusy) {
			t.Errorf("%v", err)
		}
		w.CloseWithError(io.ErrUnexpectedEOF)
		if err := <-first; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
		synctest.Wait()
		must(c.Store(ctx, f, 0, 1, 1, strings.NewReader("x")))(t)
	})
}

func TestStatisticsCountCalls(t *testing.T) {
	ctx, s := t.Context(), newServer(t, fs.Config{})
	f := must(s.Put(volume, "f", []byte("12345")))(t)
	c := clientAt(s, 1)
	read(t, c, f, 0, 5)
	if _, err := c.Status(ctx, afs.FID{Volume: 7}); err == nil {
		t.Error("no such volume")
	}
	must(c.Status(ctx, f))(t)
	full := must(c.XStats(ctx, fs.FullPerformance))(t)
	perf := must(c.XStats(ctx, fs.Performance))(t)
	if len(perf.Words) != 98 || len(full.Words) != 666 { // as with OpenAFS 1.8
		t.Fatalf("%d and %d words", len(perf.Words), len(full.Words))
	}
	at := len(perf.Words) + 4
	if full.Words[at] != 1 || full.Words[at+36] != 2 || full.Words[at+37] != 1 || perf.Words[0] != 4 {
		t.Errorf("%v", full.Words)
	}
	if n := must(c.Counters(ctx, 16))(t); len(n) != 16 || n[5] != 1 || n[6] != 5 {
		t.Errorf("%v", n)
	}
	if st := must(c.Statistics(ctx))(t); st.FetchDatas != 1 || st.FetchedBytes != 5 || st.Disks[0].Total == 0 {
		t.Errorf("%+v", st)
	}
	if _, err := c.XStats(ctx, 99); !errors.Is(err, afs.ErrInvalid) {
		t.Error(err)
	}
}

// What OpenAFS's file server, its client in user space and Linux's kAFS have sent.
func TestRecordedCallsDecode(t *testing.T) {
	seen := recorded.Calls{Port: afs.PortFile, Service: afs.ServiceFile, Data: fs.Split()}.Check(t, fs.Operations())
	recorded.Want(t, seen, "FetchStatus", "GiveUpCallBacks", "GetVolumeStatus", "InlineBulkStatus", "GetCapabilities")
}

func TestMessagesSurviveTheirEncoding(t *testing.T) { rpctest.RoundTrip(t, fs.Operations()) }

func FuzzMessages(f *testing.F) { rpctest.Fuzz(f, fs.Operations()) }

func ExampleClient() {
	s := fs.NewServer(fs.Config{})
	if err := s.AddVolume(fs.VolumeConfig{ID: 536870912, Name: "root.cell"}); err != nil {
		panic(err)
	}
	f, err := s.Put(536870912, "docs/hello", []byte("hello\n"))
	fmt.Println(f, err)
	files := fs.NewClient(rpctest.Serve(fs.NewMux(s)))
	var b strings.Builder
	_, n, err := files.Fetch(context.Background(), f, 0, 100, &b)
	fmt.Printf("%q %d %v\n", b.String(), n, err)
	// Output:
	// 536870912.2.3 <nil>
	// "hello\n" 6 <nil>
}
