package nfsd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

func TestArgumentsThatAreNoneAreGarbage(t *testing.T) {
	b := tree(t)
	garbage := func(err error) bool {
		e, is := errors.AsType[*oncrpc.AcceptedError](err)
		return is && e.Stat == oncrpc.GarbageArguments
	}
	call := func(program, version, proc uint32, args []byte) error {
		return b.send(context.Background(), &oncrpc.Invocation{
			Program: program, Version: version, Procedure: proc,
			Args: func(e *xdr.Encoder) { e.Fixed(args) }, Results: func(*xdr.Decoder) error { return nil }, ResultsMost: 1 << 20,
		})
	}
	for p := nfs3.ProcGetAttr; p < nfs3.Procs; p++ {
		for _, args := range [][]byte{nil, {0, 0, 0, 65}, bytes.Repeat([]byte{0, 0, 0, 0}, 100), bytes.Repeat([]byte{0xff}, 64)} {
			if err := call(nfs3.Program, 3, uint32(p), args); !garbage(err) {
				t.Errorf("%v, %d bytes: %v", p, len(args), err)
			}
		}
	}
	var e xdr.Encoder
	(&nfs3.MkdirArgs{Where: at(b.root, "dir")}).Encode(&e)
	if err := call(nfs3.Program, 3, uint32(nfs3.ProcMkdir), append(e.AppendTo(nil), 0, 0, 0, 0)); !garbage(err) {
		t.Errorf("MKDIR with more behind it: %v", err)
	}
	b.want("what it would have made", b.lookup(nil, b.root, "dir"), nfs3.ErrNoEnt)
	for p := nfs3.MountProcMnt; p < nfs3.MountProcs; p++ {
		if err := call(nfs3.MountProgram, 3, uint32(p), bytes.Repeat([]byte{0xff}, 64)); !garbage(err) {
			t.Errorf("MOUNT's %v: %v", p, err)
		}
	}
	for _, tc := range []struct {
		program, version, proc uint32
		want                   oncrpc.AcceptStat
	}{{nfs3.Program, 3, 22, oncrpc.ProcedureUnavailable}, {nfs3.Program, 2, 0, oncrpc.ProgramMismatch}, {nfs3.Program, 4, 0, oncrpc.ProgramMismatch}, {nfs3.MountProgram, 3, 6, oncrpc.ProcedureUnavailable}} {
		e, is := errors.AsType[*oncrpc.AcceptedError](call(tc.program, tc.version, tc.proc, nil))
		if !is || e.Stat != tc.want {
			t.Errorf("%+v: %v", tc, e)
		}
	}
	for _, program := range []uint32{nfs3.Program, nfs3.MountProgram} {
		if err := call(program, 3, 0, nil); err != nil {
			t.Errorf("NULL: %v", err)
		}
	}
}

// What is not to be done twice is answered as before if it is sent again (RFC 1813 §4.5).
func TestCallsThatAreSentAgainAreDoneOnce(t *testing.T) {
	b := tree(t)
	b.create(alice, b.root, "file", 0o600)
	cred, err := (&oncrpc.Sys{UID: alice.uid, GID: alice.gid}).Auth()
	if err != nil {
		t.Fatal(err)
	}
	var call xdr.Encoder
	head := oncrpc.Call{XID: 1, Program: nfs3.Program, Version: 3, Procedure: uint32(nfs3.ProcRemove), Cred: cred}
	if err := head.Encode(&call); err != nil {
		t.Fatal(err)
	}
	(&nfs3.NameArgs{Dir: b.root, Name: "file"}).Encode(&call)
	var replies [2][]byte
	for i := range replies {
		var reply xdr.Encoder
		x := oncrpc.Exchange{Call: &oncrpc.Message{Stream: call.AppendTo(nil)}, Netid: "tcp", Remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700 + i}}
		if err := b.rpc.Serve(context.Background(), &x, &reply); err != nil {
			t.Fatal(err)
		}
		replies[i] = reply.AppendTo(nil)
	}
	d := xdr.NewDecoder(replies[1])
	var r oncrpc.Reply
	var res nfs3.WccRes
	if err := errors.Join(r.Decode(d), r.Err, res.Decode(d)); err != nil || res.Status != nfs3.OK || !bytes.Equal(replies[0], replies[1]) {
		t.Errorf("sent again: %v, %v", err, res.Status.String())
	}
}

// READ's data goes from the memory that the filesystem has read it into.
func TestReadDataIsNotCopied(t *testing.T) {
	b := tree(t)
	h := b.create(nil, b.root, "file", 0o600)
	ok(b, b.write(nil, h, 0, "0123456789"))
	link := b.symlink(nil, b.root, "target")
	for p, tc := range map[nfs3.Proc]struct {
		args nfs3.Codec
		want string
	}{nfs3.ProcRead: {&nfs3.ReadArgs{File: h, Offset: 2, Count: 5}, "23456"}, nfs3.ProcReadLink: {&nfs3.HandleArgs{Handle: link}, "target"}} {
		var call, reply xdr.Encoder
		head := oncrpc.Call{XID: 1, Program: nfs3.Program, Version: 3, Procedure: uint32(p)}
		if err := head.Encode(&call); err != nil {
			t.Fatal(err)
		}
		tc.args.Encode(&call)
		mine := make([]byte, 64)
		var asked []int
		x := oncrpc.Exchange{Call: &oncrpc.Message{Stream: call.AppendTo(nil)}, Netid: "rdma", Remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700}, Buffer: func(n int) []byte {
			asked = append(asked, n)
			return mine[:n]
		}}
		if err := b.rpc.Serve(context.Background(), &x, &reply); err != nil {
			t.Fatal(err)
		}
		bulks := reply.Bulks()
		if len(asked) != 1 || asked[0] != len(tc.want) || len(bulks) != 1 || string(bulks[0].Pieces[0]) != tc.want || &bulks[0].Pieces[0][0] != &mine[0] {
			t.Errorf("%v: asked for %v bytes, and sends %v", p, asked, bulks)
		}
	}
}

func TestWritesAndReadsGoOnAtOnce(t *testing.T) {
	b := tree(t)
	h := b.create(alice, b.root, "file", 0o666)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			data := strings.Repeat(string(rune('a'+i)), 4096)
			for n := range 20 {
				off := uint64(n*8+i) * 4096
				if r := b.write(alice, h, off, data); r.Status != nfs3.OK || r.Count != 4096 {
					t.Errorf("%+v", r)
				}
				if r := b.read(alice, h, off, 4096); r.Status != nfs3.OK || string(r.Data) != data {
					t.Errorf("%v", r.Status.String())
				}
			}
		})
	}
	wg.Wait()
	if a := b.getAttr(h); a.Size != 20*8*4096 {
		t.Errorf("%d bytes", a.Size)
	}
}

func TestFailuresAreLogged(t *testing.T) {
	var log bytes.Buffer
	b := on(t, nfsd.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, nfsd.Export{FS: &broken{FS: memfs.New(memfs.Options{}), what: "Stat", err: strangeError{}}})
	b.want("FSSTAT", do[nfs3.FSStatRes](b, alice, nfs3.ProcFSStat, &nfs3.HandleArgs{Handle: b.root}), nfs3.ErrServerFault)
	b.want("LOOKUP", b.lookup(alice, b.root, "x"), nfs3.ErrNoEnt)
	if s := log.String(); !strings.Contains(s, "FSSTAT") || !strings.Contains(s, "192.0.2.1") || !strings.Contains(s, "strange") || strings.Contains(s, "LOOKUP") || !strings.Contains(s, "/tree") {
		t.Errorf("%q", s)
	}
}

// Clients of which no address is known are in no prefix.
func TestClientsWithoutAnAddress(t *testing.T) {
	b := bare(t, nfsd.Config{})
	if err := b.server.AddExport(nfsd.Export{Path: "/tree", FS: memfs.New(memfs.Options{}), Insecure: true}); err != nil {
		t.Fatal(err)
	}
	for _, remote := range []net.Addr{nil, &net.UnixAddr{Name: "socket"}, pipeAddr("192.0.2.7:1")} {
		var call, reply xdr.Encoder
		head := oncrpc.Call{XID: xid.Add(1), Program: nfs3.MountProgram, Version: 3, Procedure: uint32(nfs3.MountProcMnt)}
		if err := head.Encode(&call); err != nil {
			t.Fatal(err)
		}
		(&nfs3.MountArgs{Path: "/tree"}).Encode(&call)
		x := oncrpc.Exchange{Call: &oncrpc.Message{Stream: call.AppendTo(nil)}, Netid: "tcp", Remote: remote}
		if err := b.rpc.Serve(context.Background(), &x, &reply); err != nil {
			t.Fatal(err)
		}
	}
	if m := b.server.Mounts(); len(m) != 2 || m[0].Host != "unknown" || m[1].Host != "192.0.2.7" {
		t.Errorf("%+v", m)
	}
}

type pipeAddr string

func (pipeAddr) Network() string  { return "rdma" }
func (a pipeAddr) String() string { return string(a) }

// FuzzServer gives a server calls of any bytes. Whatever they are, what it says decodes,
// and is as long as it may be.
func FuzzServer(f *testing.F) {
	fs := memfs.New(memfs.Options{Mode: 0o777, MaxBytes: 1 << 20, MaxFiles: 1000})
	b := on(f, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	dir := b.mkdir(alice, b.root, "dir", 0o777)
	file := b.create(alice, dir, "file", 0o666)
	link := b.symlink(alice, dir, "file")
	for p, args := range map[nfs3.Proc]nfs3.Codec{
		nfs3.ProcGetAttr: &nfs3.HandleArgs{Handle: file}, nfs3.ProcSetAttr: &nfs3.SetAttrArgs{Object: file, Attr: nfs3.SetAttr{Size: new(uint64(5)), Mode: new(uint32(0o600))}, Guard: &nfs3.Time{}},
		nfs3.ProcLookup: new(at(dir, "file")), nfs3.ProcAccess: &nfs3.AccessArgs{Object: dir, Access: 0x3f}, nfs3.ProcReadLink: &nfs3.HandleArgs{Handle: link},
		nfs3.ProcRead: &nfs3.ReadArgs{File: file, Count: 100}, nfs3.ProcWrite: &nfs3.WriteArgs{File: file, Offset: 5, Data: []byte("data")},
		nfs3.ProcCreate: &nfs3.CreateArgs{Where: at(dir, "new"), Mode: nfs3.Exclusive, Verifier: nfs3.Verifier{1}}, nfs3.ProcMkdir: &nfs3.MkdirArgs{Where: at(dir, "sub")},
		nfs3.ProcSymlink: &nfs3.SymlinkArgs{Where: at(dir, "l"), Path: ".."}, nfs3.ProcMknod: &nfs3.MknodArgs{Where: at(dir, "dev"), Type: nfs3.CharDevice},
		nfs3.ProcRemove: new(at(dir, "new")), nfs3.ProcRmdir: new(at(dir, "sub")), nfs3.ProcRename: &nfs3.RenameArgs{From: at(dir, "file"), To: at(b.root, "file")},
		nfs3.ProcLink: &nfs3.LinkArgs{File: file, Link: at(dir, "again")}, nfs3.ProcReadDir: &nfs3.ReadDirArgs{Dir: dir, Count: 4096},
		nfs3.ProcReadDirPlus: &nfs3.ReadDirPlusArgs{Dir: dir, DirCount: 4096, MaxCount: 4096}, nfs3.ProcFSStat: &nfs3.HandleArgs{Handle: dir},
		nfs3.ProcFSInfo: &nfs3.HandleArgs{Handle: dir}, nfs3.ProcPathConf: &nfs3.HandleArgs{Handle: dir}, nfs3.ProcCommit: &nfs3.CommitArgs{File: file},
	} {
		var e xdr.Encoder
		args.Encode(&e)
		f.Add(uint32(nfs3.Program), uint32(p), uint32(1000), e.AppendTo(nil))
	}
	f.Add(uint32(nfs3.MountProgram), uint32(nfs3.MountProcMnt), uint32(0), []byte("\x00\x00\x00\x05/tree\x00\x00\x00"))
	f.Add(uint32(nfs3.MountProgram), uint32(nfs3.MountProcUmnt), uint32(0), []byte("\x00\x00\x00\x05/tree\x00\x00\x00"))
	f.Add(uint32(nfs3.MountProgram), uint32(nfs3.MountProcDump), uint32(0), []byte{})
	f.Add(uint32(nfs3.MountProgram), uint32(nfs3.MountProcExport), uint32(0), []byte{})
	f.Fuzz(func(t *testing.T, program, proc, uid uint32, args []byte) {
		b := &bed{TB: t, server: b.server, rpc: b.rpc}
		b.send = b.from("192.0.2.1:700")
		var res nfs3.Codec
		if program == nfs3.MountProgram {
			res = nfs3.MountProc(proc).Results()
		} else {
			res = nfs3.Proc(proc).Results()
		}
		if res == nil {
			res = &nfs3.Void{}
		}
		most := nfs3.MountProc(proc).MaxReply()
		if p := nfs3.Proc(proc); program == nfs3.Program && p < nfs3.Procs {
			a := p.Args()
			_ = a.Decode(xdr.NewDecoder(args))
			most = p.MaxReply(a)
			switch a := a.(type) {
			case *nfs3.ReadArgs:
				most += int(min(a.Count, 1<<20))&^3 + 4
			case *nfs3.HandleArgs:
				most += nfs3.MaxPath
			}
		}
		cred, err := (&oncrpc.Sys{UID: uid, GID: uid}).Auth()
		if err != nil {
			t.Fatal(err)
		}
		err = b.send(context.Background(), &oncrpc.Invocation{
			Program: program, Version: 3, Procedure: proc, Cred: cred,
			Args: func(e *xdr.Encoder) { e.Fixed(args) }, Results: res.Decode, ResultsMost: most,
		})
		if e, is := errors.AsType[*oncrpc.AcceptedError](err); err != nil && (!is || e.Stat == oncrpc.SystemError) {
			t.Fatal(err)
		}
	})
}
