package nfs3_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc/xdr"
)

// The parts of messages, written down by hand from RFC 1813 §2.5 and §2.6.
const (
	handleX = "00000005" + "0102030405" + "000000" // nfs_fh3 of five bytes
	attrX   = "00000001" + "000001a4" + "00000002" + "000003e8" + "00000064" +
		"0000000100000002" + "0000000000001000" + "00000008" + "00000009" +
		"00000000000000aa" + "00000000000000bb" +
		"00000001" + "00000002" + "00000003" + "00000004" + "00000005" + "00000006" // fattr3
	yesAttr = "00000001" + attrX
	wccX    = "00000001" + "0000000000000007" + "0000000100000002" + "0000000300000004" + yesAttr // wcc_data
	wccNone = "00000000" + "00000000"
	nameX   = "00000005" + "hello" + "000000"
	setNone = "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000"
	setAll  = "00000001" + "000001ed" + "00000001" + "00000001" + "00000001" + "00000002" +
		"00000001" + "0000000000000003" + "00000001" + "00000002" + "00000004" + "00000005" // the last is a client's time
)

// bytes turns digits and the word hello into bytes.
func octets(t testing.TB, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(strings.ReplaceAll(s, "hello", "68656c6c6f"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func handle(t testing.TB, p ...byte) nfs3.Handle {
	t.Helper()
	h, err := nfs3.MakeHandle(p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var (
	attr = nfs3.Attr{
		Type: nfs3.Regular, Mode: 0o644, Links: 2, UID: 1000, GID: 100, Size: 1<<32 + 2, Used: 4096, Major: 8, Minor: 9,
		FSID: 0xaa, FileID: 0xbb, Atime: nfs3.Time{Seconds: 1, Nanoseconds: 2}, Mtime: nfs3.Time{Seconds: 3, Nanoseconds: 4}, Ctime: nfs3.Time{Seconds: 5, Nanoseconds: 6},
	}
	post = nfs3.PostOpAttr{Present: true, Attr: attr}
	wcc  = nfs3.WccData{
		Before: nfs3.PreOpAttr{Present: true, Size: 7, Mtime: nfs3.Time{Seconds: 1, Nanoseconds: 2}, Ctime: nfs3.Time{Seconds: 3, Nanoseconds: 4}},
		After:  post,
	}
	set = nfs3.SetAttr{
		Mode: new(uint32(0o755)), UID: new(uint32(1)), GID: new(uint32(2)), Size: new(uint64(3)),
		Atime: nfs3.SetTime{How: nfs3.SetToServerTime},
		Mtime: nfs3.SetTime{How: nfs3.SetToClientTime, Time: nfs3.Time{Seconds: 4, Nanoseconds: 5}},
	}
	verifier = nfs3.Verifier{1, 2, 3, 4, 5, 6, 7, 8}
)

type message struct {
	name   string
	proc   fmt.Stringer
	codec  nfs3.Codec
	octets string
}

// arguments and results are one or more of each procedure of NFS and of MOUNT.
func arguments(t testing.TB) []message {
	h := handle(t, 1, 2, 3, 4, 5)
	at := nfs3.NameArgs{Dir: h, Name: "hello"}
	return []message{
		{"null", nfs3.ProcNull, &nfs3.Void{}, ""},
		{"getattr", nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: h}, handleX},
		{"setattr", nfs3.ProcSetAttr, &nfs3.SetAttrArgs{Object: h, Attr: set}, handleX + setAll + "00000000"},
		{"setattr guarded", nfs3.ProcSetAttr, &nfs3.SetAttrArgs{Object: h, Guard: &nfs3.Time{Seconds: 1, Nanoseconds: 2}}, handleX + setNone + "000000010000000100000002"},
		{"lookup", nfs3.ProcLookup, &at, handleX + nameX},
		{"access", nfs3.ProcAccess, &nfs3.AccessArgs{Object: h, Access: 0x3f}, handleX + "0000003f"},
		{"readlink", nfs3.ProcReadLink, &nfs3.HandleArgs{Handle: h}, handleX},
		{"read", nfs3.ProcRead, &nfs3.ReadArgs{File: h, Offset: 1 << 32, Count: 4096}, handleX + "0000000100000000" + "00001000"},
		{"write", nfs3.ProcWrite, &nfs3.WriteArgs{File: h, Offset: 2, Stable: nfs3.FileSync, Data: []byte("hello")}, handleX + "0000000000000002" + "00000005" + "00000002" + nameX},
		{"create unchecked", nfs3.ProcCreate, &nfs3.CreateArgs{Where: at, Attr: set}, handleX + nameX + "00000000" + setAll},
		{"create guarded", nfs3.ProcCreate, &nfs3.CreateArgs{Where: at, Mode: nfs3.Guarded}, handleX + nameX + "00000001" + setNone},
		{"create exclusive", nfs3.ProcCreate, &nfs3.CreateArgs{Where: at, Mode: nfs3.Exclusive, Verifier: verifier}, handleX + nameX + "00000002" + "0102030405060708"},
		{"mkdir", nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at, Attr: set}, handleX + nameX + setAll},
		{"symlink", nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at, Attr: set, Path: "hello"}, handleX + nameX + setAll + nameX},
		{"mknod device", nfs3.ProcMknod, &nfs3.MknodArgs{Where: at, Type: nfs3.CharDevice, Attr: set, Major: 1, Minor: 3}, handleX + nameX + "00000004" + setAll + "0000000100000003"},
		{"mknod fifo", nfs3.ProcMknod, &nfs3.MknodArgs{Where: at, Type: nfs3.FIFO, Attr: set}, handleX + nameX + "00000007" + setAll},
		{"mknod directory", nfs3.ProcMknod, &nfs3.MknodArgs{Where: at, Type: nfs3.Directory}, handleX + nameX + "00000002"},
		{"remove", nfs3.ProcRemove, &at, handleX + nameX},
		{"rmdir", nfs3.ProcRmdir, &at, handleX + nameX},
		{"rename", nfs3.ProcRename, &nfs3.RenameArgs{From: at, To: nfs3.NameArgs{Name: "hello"}}, handleX + nameX + "00000000" + nameX},
		{"link", nfs3.ProcLink, &nfs3.LinkArgs{File: h, Link: at}, handleX + handleX + nameX},
		{"readdir", nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: h, Cookie: 3, Verifier: verifier, Count: 512}, handleX + "0000000000000003" + "0102030405060708" + "00000200"},
		{"readdirplus", nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: h, Cookie: 3, Verifier: verifier, DirCount: 512, MaxCount: 4096}, handleX + "0000000000000003" + "0102030405060708" + "00000200" + "00001000"},
		{"fsstat", nfs3.ProcFSStat, &nfs3.HandleArgs{Handle: h}, handleX},
		{"fsinfo", nfs3.ProcFSInfo, &nfs3.HandleArgs{Handle: h}, handleX},
		{"pathconf", nfs3.ProcPathConf, &nfs3.HandleArgs{Handle: h}, handleX},
		{"commit", nfs3.ProcCommit, &nfs3.CommitArgs{File: h, Offset: 1, Count: 2}, handleX + "0000000000000001" + "00000002"},
		{"mount null", nfs3.MountProcNull, &nfs3.Void{}, ""},
		{"mnt", nfs3.MountProcMnt, &nfs3.MountArgs{Path: "hello"}, nameX},
		{"dump", nfs3.MountProcDump, &nfs3.Void{}, ""},
		{"umnt", nfs3.MountProcUmnt, &nfs3.MountArgs{Path: "hello"}, nameX},
		{"umntall", nfs3.MountProcUmntAll, &nfs3.Void{}, ""},
		{"export", nfs3.MountProcExport, &nfs3.Void{}, ""},
	}
}

func results(t testing.TB) []message {
	h := handle(t, 1, 2, 3, 4, 5)
	return []message{
		{"null", nfs3.ProcNull, &nfs3.Void{}, ""},
		{"getattr", nfs3.ProcGetAttr, &nfs3.GetAttrRes{Attr: attr}, "00000000" + attrX},
		{"getattr failed", nfs3.ProcGetAttr, &nfs3.GetAttrRes{Status: nfs3.ErrStale}, "00000046"},
		{"setattr", nfs3.ProcSetAttr, &nfs3.WccRes{Wcc: wcc}, "00000000" + wccX},
		{"setattr failed", nfs3.ProcSetAttr, &nfs3.WccRes{Status: nfs3.ErrNotSync}, "00002712" + wccNone},
		{"lookup", nfs3.ProcLookup, &nfs3.LookupRes{Object: h, Attr: post}, "00000000" + handleX + yesAttr + "00000000"},
		{"lookup failed", nfs3.ProcLookup, &nfs3.LookupRes{Status: nfs3.ErrNoEnt, Dir: post}, "00000002" + yesAttr},
		{"access", nfs3.ProcAccess, &nfs3.AccessRes{Attr: post, Access: 1}, "00000000" + yesAttr + "00000001"},
		{"access failed", nfs3.ProcAccess, &nfs3.AccessRes{Status: nfs3.ErrIO}, "00000005" + "00000000"},
		{"readlink", nfs3.ProcReadLink, &nfs3.ReadLinkRes{Attr: post, Path: []byte("hello")}, "00000000" + yesAttr + nameX},
		{"readlink failed", nfs3.ProcReadLink, &nfs3.ReadLinkRes{Status: nfs3.ErrInval, Attr: post}, "00000016" + yesAttr},
		{"read", nfs3.ProcRead, &nfs3.ReadRes{Attr: post, EOF: true, Data: []byte("hello")}, "00000000" + yesAttr + "00000005" + "00000001" + nameX},
		{"read nothing", nfs3.ProcRead, &nfs3.ReadRes{Data: []byte{}}, "00000000" + "00000000" + "00000000" + "00000000" + "00000000"},
		{"read failed", nfs3.ProcRead, &nfs3.ReadRes{Status: nfs3.ErrAcces}, "0000000d" + "00000000"},
		{"write", nfs3.ProcWrite, &nfs3.WriteRes{Wcc: wcc, Count: 5, Committed: nfs3.DataSync, Verifier: verifier}, "00000000" + wccX + "00000005" + "00000001" + "0102030405060708"},
		{"write failed", nfs3.ProcWrite, &nfs3.WriteRes{Status: nfs3.ErrNoSpc, Wcc: wcc}, "0000001c" + wccX},
		{"create", nfs3.ProcCreate, &nfs3.NewRes{Object: nfs3.PostOpHandle{Present: true, Handle: h}, Attr: post, Dir: wcc}, "00000000" + "00000001" + handleX + yesAttr + wccX},
		{"create failed", nfs3.ProcCreate, &nfs3.NewRes{Status: nfs3.ErrExist, Dir: wcc}, "00000011" + wccX},
		{"mkdir", nfs3.ProcMkdir, &nfs3.NewRes{Dir: wcc}, "00000000" + "00000000" + "00000000" + wccX},
		{"symlink", nfs3.ProcSymlink, &nfs3.NewRes{}, "00000000" + "00000000" + "00000000" + wccNone},
		{"mknod", nfs3.ProcMknod, &nfs3.NewRes{Status: nfs3.ErrBadType}, "00002717" + wccNone},
		{"remove", nfs3.ProcRemove, &nfs3.WccRes{Wcc: wcc}, "00000000" + wccX},
		{"rmdir", nfs3.ProcRmdir, &nfs3.WccRes{Status: nfs3.ErrNotEmpty, Wcc: wcc}, "00000042" + wccX},
		{"rename", nfs3.ProcRename, &nfs3.RenameRes{From: wcc}, "00000000" + wccX + wccNone},
		{"rename failed", nfs3.ProcRename, &nfs3.RenameRes{Status: nfs3.ErrXDev, To: wcc}, "00000012" + wccNone + wccX},
		{"link", nfs3.ProcLink, &nfs3.LinkRes{Attr: post, Dir: wcc}, "00000000" + yesAttr + wccX},
		{"link failed", nfs3.ProcLink, &nfs3.LinkRes{Status: nfs3.ErrMLink}, "0000001f" + "00000000" + wccNone},
		{
			"readdir", nfs3.ProcReadDir, &nfs3.ReadDirRes{Dir: post, Verifier: verifier, Entries: []nfs3.Entry{{FileID: 1, Name: "hello", Cookie: 3}, {FileID: 2, Name: "hello", Cookie: 4}}, EOF: true},
			"00000000" + yesAttr + "0102030405060708" +
				"00000001" + "0000000000000001" + nameX + "0000000000000003" + "00000001" + "0000000000000002" + nameX + "0000000000000004" +
				"00000000" + "00000001",
		},
		{"readdir failed", nfs3.ProcReadDir, &nfs3.ReadDirRes{Status: nfs3.ErrBadCookie, Dir: post}, "00002713" + yesAttr},
		{
			"readdirplus", nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusRes{Verifier: verifier, Entries: []nfs3.EntryPlus{
				{Entry: nfs3.Entry{FileID: 1, Name: "hello", Cookie: 3}, Attr: post, Handle: nfs3.PostOpHandle{Present: true, Handle: h}},
				{Entry: nfs3.Entry{FileID: 2, Name: "hello", Cookie: 4}},
			}},
			"00000000" + "00000000" + "0102030405060708" +
				"00000001" + "0000000000000001" + nameX + "0000000000000003" + yesAttr + "00000001" + handleX +
				"00000001" + "0000000000000002" + nameX + "0000000000000004" + "00000000" + "00000000" +
				"00000000" + "00000000",
		},
		{"readdirplus failed", nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusRes{Status: nfs3.ErrTooSmall}, "00002715" + "00000000"},
		{
			"fsstat", nfs3.ProcFSStat, &nfs3.FSStatRes{Attr: post, TotalBytes: 1, FreeBytes: 2, AvailBytes: 3, TotalFiles: 4, FreeFiles: 5, AvailFiles: 6, Invariant: 7},
			"00000000" + yesAttr + "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004" + "0000000000000005" + "0000000000000006" + "00000007",
		},
		{"fsstat failed", nfs3.ProcFSStat, &nfs3.FSStatRes{Status: nfs3.ErrServerFault, Attr: post}, "00002716" + yesAttr},
		{
			"fsinfo", nfs3.ProcFSInfo, &nfs3.FSInfoRes{
				Attr: post, ReadMax: 1, ReadPref: 2, ReadMultiple: 3, WriteMax: 4, WritePref: 5, WriteMultiple: 6, DirPref: 7, MaxFileSize: 8,
				TimeDelta: nfs3.Time{Seconds: 9, Nanoseconds: 10}, Properties: nfs3.FSFLink | nfs3.FSFSymlink | nfs3.FSFHomogeneous | nfs3.FSFCanSetTime,
			},
			"00000000" + yesAttr + "00000001" + "00000002" + "00000003" + "00000004" + "00000005" + "00000006" + "00000007" + "0000000000000008" + "000000090000000a" + "0000001b",
		},
		{"fsinfo failed", nfs3.ProcFSInfo, &nfs3.FSInfoRes{Status: nfs3.ErrBadHandle}, "00002711" + "00000000"},
		{
			"pathconf", nfs3.ProcPathConf, &nfs3.PathConfRes{Attr: post, MaxLinks: 1, MaxName: 255, NoTruncate: true, CaseInsensitive: true},
			"00000000" + yesAttr + "00000001" + "000000ff" + "00000001" + "00000000" + "00000001" + "00000000",
		},
		{"pathconf failed", nfs3.ProcPathConf, &nfs3.PathConfRes{Status: nfs3.ErrIO}, "00000005" + "00000000"},
		{"commit", nfs3.ProcCommit, &nfs3.CommitRes{Wcc: wcc, Verifier: verifier}, "00000000" + wccX + "0102030405060708"},
		{"commit failed", nfs3.ProcCommit, &nfs3.CommitRes{Status: nfs3.ErrIO}, "00000005" + wccNone},
		{"mount null", nfs3.MountProcNull, &nfs3.Void{}, ""},
		{"mnt", nfs3.MountProcMnt, &nfs3.MountRes{Handle: h, Flavors: []uint32{1, 0}}, "00000000" + handleX + "00000002" + "00000001" + "00000000"},
		{"mnt failed", nfs3.MountProcMnt, &nfs3.MountRes{Status: nfs3.MountErrAcces}, "0000000d"},
		{"dump", nfs3.MountProcDump, &nfs3.DumpRes{Mounts: []nfs3.Mount{{Host: "hello", Dir: "hello"}, {}}}, "00000001" + nameX + nameX + "00000001" + "00000000" + "00000000" + "00000000"},
		{"umnt", nfs3.MountProcUmnt, &nfs3.Void{}, ""},
		{"umntall", nfs3.MountProcUmntAll, &nfs3.Void{}, ""},
		{
			"export", nfs3.MountProcExport, &nfs3.ExportRes{Exports: []nfs3.Export{{Dir: "hello", Groups: []string{"hello", ""}}, {Dir: ""}}},
			"00000001" + nameX + "00000001" + nameX + "00000001" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" + "00000000",
		},
	}
}

func encode(c nfs3.Codec) []byte {
	var e xdr.Encoder
	c.Encode(&e)
	return e.AppendTo(nil)
}

// each is what has arguments and results.
type each interface {
	fmt.Stringer
	Args() nfs3.Codec
	Results() nfs3.Codec
}

func testOctets(t *testing.T, messages []message, fresh func(each) nfs3.Codec) {
	seen := map[each]bool{}
	for _, m := range messages {
		p, ok := m.proc.(each)
		if !ok {
			t.Fatalf("%v is no procedure", m.proc)
		}
		seen[p] = true
		t.Run(m.name, func(t *testing.T) {
			want := octets(t, m.octets)
			if got := encode(m.codec); !bytes.Equal(got, want) {
				t.Errorf("%x\nwant %x", got, want)
			}
			got := fresh(p)
			d := xdr.NewDecoder(want)
			if err := got.Decode(d); err != nil || d.End() != nil || !reflect.DeepEqual(got, m.codec) {
				t.Errorf("decoded %+v: %v, %v\nwant %+v", got, err, d.Err(), m.codec)
			}
			for n := range want {
				d := xdr.NewDecoder(want[:n])
				if err := fresh(p).Decode(d); !errors.Is(err, xdr.ErrShort) {
					t.Errorf("%d bytes of %d: %v", n, len(want), err)
				}
			}
			// What was there before leaves nothing behind.
			for _, other := range messages {
				if o, ok := other.proc.(each); ok && o == p {
					c := fresh(p)
					_ = c.Decode(xdr.NewDecoder(octets(t, other.octets)))
					if err := c.Decode(xdr.NewDecoder(want)); err != nil || !bytes.Equal(encode(c), want) {
						t.Errorf("decoded over %s: %+v, %v", other.name, c, err)
					}
				}
			}
		})
	}
	for p := range nfs3.Proc(nfs3.Procs) {
		if !seen[p] {
			t.Errorf("no message of %v", p)
		}
	}
	for p := range nfs3.MountProc(nfs3.MountProcs) {
		if !seen[p] {
			t.Errorf("no message of MOUNT's %v", p)
		}
	}
}

func TestArgumentsAreEncodedAsTheRFCHasThem(t *testing.T) {
	testOctets(t, arguments(t), func(p each) nfs3.Codec { return p.Args() })
}

func TestResultsAreEncodedAsTheRFCHasThem(t *testing.T) {
	testOctets(t, results(t), func(p each) nfs3.Codec { return p.Results() })
}
