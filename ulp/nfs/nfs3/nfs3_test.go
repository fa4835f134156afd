package nfs3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc/xdr"
)

// RFC 8267 §4: "the opaque file data argument in the NFS WRITE procedure, the pathname
// argument in the NFS SYMLINK procedure, the opaque file data result in the NFS READ
// procedure, the pathname result in the NFS READLINK procedure. All other argument or
// result data items in NFS versions 2 and 3 are not DDP-eligible."
func TestOnlyWhatIsEligibleIsABulk(t *testing.T) {
	for direction, messages := range map[string][]message{"arguments": arguments(t), "results": results(t)} {
		eligible := map[string]bool{"arguments WRITE": true, "arguments SYMLINK": true, "results READ": true, "results READLINK": true}
		for _, m := range messages {
			var e xdr.Encoder
			m.codec.Encode(&e)
			bulks := e.Bulks()
			want := 0
			if eligible[direction+" "+m.proc.String()] && !strings.HasSuffix(m.name, "failed") {
				want = 1
			}
			if len(bulks) != want {
				t.Errorf("%s of %s: %d bulks; want %d", direction, m.name, len(bulks), want)
			}
			if want == 0 || bulks[0].Len == 0 {
				continue
			}
			// It is found where a transport has moved it.
			stream := e.Reduced(nil, func(int, xdr.Bulk) bool { return true })
			p, _ := m.proc.(each)
			c := map[string]func() nfs3.Codec{"arguments": p.Args, "results": p.Results}[direction]()
			d := xdr.NewDecoder(stream, xdr.Moved{Position: bulks[0].Position, Data: bytes.Join(bulks[0].Pieces, nil)})
			if err := c.Decode(d); err != nil || d.End() != nil || !bytes.Equal(encode(c), octets(t, m.octets)) {
				t.Errorf("%s of %s, moved: %+v, %v, %v", direction, m.name, c, err, d.Err())
			}
		}
	}
}

// The longest results of each procedure have what MaxReply says, bulks not counted.
func TestRepliesAreAsLongAsIsSaid(t *testing.T) {
	h := handle(t, bytes.Repeat([]byte{1}, nfs3.MaxHandle)...)
	obj := nfs3.PostOpHandle{Present: true, Handle: h}
	entries := make([]nfs3.Entry, 10)
	plus := make([]nfs3.EntryPlus, 10)
	for i := range entries {
		entries[i].Name = strings.Repeat("x", i)
		plus[i] = nfs3.EntryPlus{Entry: entries[i], Attr: post, Handle: obj}
	}
	readdir := nfs3.ReadDirRes{Dir: post, Entries: entries}
	readdirPlus := nfs3.ReadDirPlusRes{Dir: post, Entries: plus}
	for p, tc := range map[nfs3.Proc]struct {
		args nfs3.Codec
		res  nfs3.Codec
	}{
		nfs3.ProcNull:        {&nfs3.Void{}, &nfs3.Void{}},
		nfs3.ProcGetAttr:     {&nfs3.HandleArgs{}, &nfs3.GetAttrRes{}},
		nfs3.ProcSetAttr:     {&nfs3.SetAttrArgs{}, &nfs3.WccRes{Wcc: wcc}},
		nfs3.ProcLookup:      {&nfs3.NameArgs{}, &nfs3.LookupRes{Object: h, Attr: post, Dir: post}},
		nfs3.ProcAccess:      {&nfs3.AccessArgs{}, &nfs3.AccessRes{Attr: post}},
		nfs3.ProcReadLink:    {&nfs3.HandleArgs{}, &nfs3.ReadLinkRes{Attr: post}},
		nfs3.ProcRead:        {&nfs3.ReadArgs{Count: 1 << 20}, &nfs3.ReadRes{Attr: post}},
		nfs3.ProcWrite:       {&nfs3.WriteArgs{}, &nfs3.WriteRes{Wcc: wcc}},
		nfs3.ProcCreate:      {&nfs3.CreateArgs{}, &nfs3.NewRes{Object: obj, Attr: post, Dir: wcc}},
		nfs3.ProcMkdir:       {&nfs3.MkdirArgs{}, &nfs3.NewRes{Object: obj, Attr: post, Dir: wcc}},
		nfs3.ProcSymlink:     {&nfs3.SymlinkArgs{}, &nfs3.NewRes{Object: obj, Attr: post, Dir: wcc}},
		nfs3.ProcMknod:       {&nfs3.MknodArgs{}, &nfs3.NewRes{Object: obj, Attr: post, Dir: wcc}},
		nfs3.ProcRemove:      {&nfs3.NameArgs{}, &nfs3.WccRes{Wcc: wcc}},
		nfs3.ProcRmdir:       {&nfs3.NameArgs{}, &nfs3.WccRes{Wcc: wcc}},
		nfs3.ProcRename:      {&nfs3.RenameArgs{}, &nfs3.RenameRes{From: wcc, To: wcc}},
		nfs3.ProcLink:        {&nfs3.LinkArgs{}, &nfs3.LinkRes{Attr: post, Dir: wcc}},
		nfs3.ProcReadDir:     {&nfs3.ReadDirArgs{Count: uint32(readdir.Size())}, &readdir},
		nfs3.ProcReadDirPlus: {&nfs3.ReadDirPlusArgs{MaxCount: uint32(readdirPlus.Size())}, &readdirPlus},
		nfs3.ProcFSStat:      {&nfs3.HandleArgs{}, &nfs3.FSStatRes{Attr: post}},
		nfs3.ProcFSInfo:      {&nfs3.HandleArgs{}, &nfs3.FSInfoRes{Attr: post}},
		nfs3.ProcPathConf:    {&nfs3.HandleArgs{}, &nfs3.PathConfRes{Attr: post}},
		nfs3.ProcCommit:      {&nfs3.CommitArgs{}, &nfs3.CommitRes{Wcc: wcc}},
	} {
		if got, want := p.MaxReply(tc.args), len(encode(tc.res)); got != want {
			t.Errorf("%v: %d; want %d", p, got, want)
		}
	}
	// A listing that is to be tiny may fail with attributes all the same; none is
	// longer than can be decoded.
	failed := len(encode(&nfs3.ReadDirRes{Status: nfs3.ErrTooSmall, Dir: post}))
	if got := nfs3.ProcReadDir.MaxReply(&nfs3.ReadDirArgs{Count: 1}); got != failed {
		t.Errorf("READDIR of one byte: %d; want %d", got, failed)
	}
	if got := nfs3.ProcReadDirPlus.MaxReply(&nfs3.ReadDirPlusArgs{MaxCount: 1<<32 - 1}); got != 4+nfs3.MaxData {
		t.Errorf("READDIRPLUS of 4 GiB: %d", got)
	}
	mnt := &nfs3.MountRes{Handle: h, Flavors: make([]uint32, 64)}
	if got, want := nfs3.MountProcMnt.MaxReply(), len(encode(mnt)); got != want {
		t.Errorf("MNT: %d; want %d", got, want)
	}
	if nfs3.Proc(nfs3.Procs).MaxReply(nil) != 0 || nfs3.MountProc(nfs3.MountProcs).MaxReply() != 0 || nfs3.MountProcExport.MaxReply() == 0 {
		t.Error("a reply of no procedure, or none of one")
	}
}

func TestSizesOfListingsAreThoseOfTheirOctets(t *testing.T) {
	for _, m := range results(t) {
		switch r := m.codec.(type) {
		case *nfs3.ReadDirRes:
			if got := 4 + r.Size(); r.Status == nfs3.OK && got != len(encode(r)) {
				t.Errorf("%s: %d of %d", m.name, got, len(encode(r)))
			}
		case *nfs3.ReadDirPlusRes:
			if got := 4 + r.Size(); r.Status == nfs3.OK && got != len(encode(r)) {
				t.Errorf("%s: %d of %d", m.name, got, len(encode(r)))
			}
		}
	}
}

func TestWhatIsNoValueOrTooLongIsRefused(t *testing.T) {
	long := func(n int) string { return fmt.Sprintf("%08x", n) + strings.Repeat("41", (n+3)&^3) }
	noDigits := strings.Repeat("00000000", 4)
	for name, tc := range map[string]struct {
		codec  nfs3.Codec
		octets string
		want   error
	}{
		"a handle of 65 bytes":        {&nfs3.HandleArgs{}, long(65), xdr.ErrLong},
		"a name":                      {&nfs3.NameArgs{}, handleX + long(nfs3.MaxName+1), xdr.ErrLong},
		"a new path":                  {&nfs3.SymlinkArgs{}, handleX + nameX + setNone + long(4*nfs3.MaxPath+1), xdr.ErrLong},
		"a path":                      {&nfs3.ReadLinkRes{}, "00000000" + "00000000" + long(nfs3.MaxPath+1), xdr.ErrLong},
		"data to be written":          {&nfs3.WriteArgs{}, handleX + "0000000000000002" + "01000001" + "00000002" + "01000001", xdr.ErrLong},
		"data that was read":          {&nfs3.ReadRes{}, "00000000" + "00000000" + "01000001" + "00000000" + "01000001", xdr.ErrLong},
		"more to write than count":    {&nfs3.WriteArgs{}, handleX + "0000000000000002" + "00000004" + "00000002" + nameX, xdr.ErrValue},
		"less read than count":        {&nfs3.ReadRes{}, "00000000" + "00000000" + "00000006" + "00000000" + nameX, xdr.ErrValue},
		"stable_how 3":                {&nfs3.WriteArgs{}, handleX + "0000000000000002" + "00000005" + "00000003" + nameX, xdr.ErrValue},
		"committed 3":                 {&nfs3.WriteRes{}, "00000000" + wccNone + "00000005" + "00000003" + "0102030405060708", xdr.ErrValue},
		"createmode3 3":               {&nfs3.CreateArgs{}, handleX + nameX + "00000003" + setNone, xdr.ErrValue},
		"time_how 3":                  {&nfs3.MkdirArgs{}, handleX + nameX + noDigits + "00000003" + "00000000", xdr.ErrValue},
		"ftype3 0":                    {&nfs3.GetAttrRes{}, "00000000" + "00000000" + attrX[8:], xdr.ErrValue},
		"ftype3 8":                    {&nfs3.GetAttrRes{}, "00000000" + "00000008" + attrX[8:], xdr.ErrValue},
		"attributes_follow 2":         {&nfs3.AccessRes{}, "00000000" + "00000002" + attrX, xdr.ErrValue},
		"a list that goes on with 2":  {&nfs3.ReadDirRes{}, "00000000" + "00000000" + "0000000000000000" + "00000002" + "0000000000000001" + nameX + "0000000000000003", xdr.ErrValue},
		"a list without end":          {&nfs3.ReadDirPlusRes{}, "00000000" + "00000000" + "0000000000000000" + strings.Repeat("00000001"+"0000000000000001"+nameX+"0000000000000003"+"0000000000000000", 9), xdr.ErrShort},
		"an entry that is cut":        {&nfs3.ReadDirRes{}, "00000000" + "00000000" + "0000000000000000" + "00000001" + "0000000000000001" + "00001000", xdr.ErrShort},
		"a path to mount":             {&nfs3.MountArgs{}, long(nfs3.MaxMountPath + 1), xdr.ErrLong},
		"flavors":                     {&nfs3.MountRes{}, "00000000" + handleX + "00000041" + strings.Repeat("00000001", 65), xdr.ErrLong},
		"a host's name":               {&nfs3.DumpRes{}, "00000001" + long(256) + nameX + "00000000", xdr.ErrLong},
		"more mounts than we list":    {&nfs3.DumpRes{}, strings.Repeat("00000001"+"0000000000000000", 1<<16+1) + "00000000", xdr.ErrLong},
		"more groups than we list":    {&nfs3.ExportRes{}, "00000001" + "00000000" + strings.Repeat("00000001"+"00000000", 1<<16+1) + "00000000" + "00000000", xdr.ErrLong},
		"a count of flavors, no more": {&nfs3.MountRes{}, "00000000" + handleX + "00000040", xdr.ErrShort},
	} {
		if err := tc.codec.Decode(xdr.NewDecoder(octets(t, tc.octets))); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v; want %v", name, err, tc.want)
		}
	}
}

func TestReadGoesWhereItIsWanted(t *testing.T) {
	res := encode(&nfs3.ReadRes{Attr: post, EOF: true, Data: []byte("hello")})
	var r nfs3.ReadRes
	p := make([]byte, 8)
	if err := r.DecodeInto(xdr.NewDecoder(res), p); err != nil || string(r.Data) != "hello" || &r.Data[0] != &p[0] || !r.EOF {
		t.Errorf("%+v, %v", r, err)
	}
	if err := r.DecodeInto(xdr.NewDecoder(res), p[:4]); !errors.Is(err, xdr.ErrLong) {
		t.Errorf("into less than it is: %v", err)
	}
	if err := r.DecodeInto(xdr.NewDecoder(encode(&nfs3.ReadRes{Status: nfs3.ErrIO, Attr: post})), p); err != nil || r.Status != nfs3.ErrIO || r.Data != nil {
		t.Errorf("failed: %+v, %v", r, err)
	}
}

func TestStatusesAreErrors(t *testing.T) {
	for s, want := range map[nfs3.Status]error{
		nfs3.ErrPerm: fs.ErrPermission, nfs3.ErrAcces: fs.ErrPermission, nfs3.ErrNoEnt: fs.ErrNotExist, nfs3.ErrExist: fs.ErrExist,
		nfs3.ErrNotEmpty: fs.ErrExist, nfs3.ErrInval: fs.ErrInvalid, nfs3.ErrNotSupp: errors.ErrUnsupported, nfs3.ErrStale: nil, nfs3.ErrIO: nil, nfs3.ErrROFS: nil,
	} {
		for _, e := range []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist, fs.ErrInvalid, errors.ErrUnsupported, os.ErrClosed} {
			if is := errors.Is(fmt.Errorf("wrapped: %w", s), e); is != (e == want) { //nolint:errorlint // which one it is
				t.Errorf("%v is %v: %t", s, e, is)
			}
		}
		if !errors.Is(s.Err(), s) || !strings.Contains(s.Error(), s.String()) || !strings.HasPrefix(s.String(), "NFS3ERR_") {
			t.Errorf("%v says %q", s.String(), s.Error())
		}
	}
	if nfs3.OK.Err() != nil || nfs3.MountOK.Err() != nil || nfs3.OK.String() != "NFS3_OK" || nfs3.MountOK.String() != "MNT3_OK" {
		t.Error("success is an error")
	}
	if e := nfs3.MountErrAcces; !errors.Is(e.Err(), fs.ErrPermission) || e.String() != "MNT3ERR_ACCES" || !strings.Contains(e.Error(), e.String()) {
		t.Errorf("%q says %q", e.String(), e.Error())
	}
	if s, m := nfs3.Status(99), nfs3.MountStatus(99); s.Err() == nil || m.Err() == nil || !strings.Contains(s.Error(), "99") || !strings.Contains(m.Error(), "99") {
		t.Errorf("%q, %q", s.Error(), m.Error())
	}
}

func TestTimesAreThoseOf1970To2106(t *testing.T) {
	for _, tc := range []struct {
		time time.Time
		want nfs3.Time
	}{
		{time.Unix(1, 2), nfs3.Time{Seconds: 1, Nanoseconds: 2}},
		{time.Unix(-1, 999), nfs3.Time{}},
		{time.Time{}, nfs3.Time{}},
		{time.Unix(1<<32-1, 5), nfs3.Time{Seconds: 1<<32 - 1, Nanoseconds: 5}},
		{time.Unix(1<<32, 0), nfs3.Time{Seconds: 1<<32 - 1, Nanoseconds: 999999999}},
	} {
		if got := nfs3.TimeOf(tc.time); got != tc.want {
			t.Errorf("%v: %v; want %v", tc.time, got, tc.want)
		}
	}
	if got := (nfs3.Time{Seconds: 1 << 31, Nanoseconds: 7}).Time(); !got.Equal(time.Unix(1<<31, 7)) {
		t.Errorf("after 2038: %v", got)
	}
}

func TestHandlesAreCompared(t *testing.T) {
	a, b := handle(t, 1, 2), handle(t, 1, 2, 0)
	if c, err := nfs3.MakeHandle("\x01\x02"); a == b || err != nil || a != c || a.String() != "0102" || !bytes.Equal(b.Octets(), []byte{1, 2, 0}) {
		t.Errorf("%v, %v, %v, %v", a, b, c, err)
	}
	if _, err := nfs3.MakeHandle(make([]byte, 65)); !errors.Is(err, nfs3.ErrHandle) {
		t.Errorf("65 bytes: %v", err)
	}
}

func TestProceduresAreThoseOfTheRFC(t *testing.T) {
	names := strings.Fields(`NULL GETATTR SETATTR LOOKUP ACCESS READLINK READ WRITE CREATE MKDIR SYMLINK MKNOD REMOVE RMDIR
		RENAME LINK READDIR READDIRPLUS FSSTAT FSINFO PATHCONF COMMIT`)
	twice := map[string]bool{
		"SETATTR": true, "WRITE": true, "CREATE": true, "MKDIR": true, "SYMLINK": true, "MKNOD": true, "REMOVE": true, "RMDIR": true, "RENAME": true, "LINK": true,
	}
	for i, name := range names {
		if p := nfs3.Proc(i); p.String() != name || p.Idempotent() == twice[name] {
			t.Errorf("procedure %d is %v, idempotent %t", i, p, p.Idempotent())
		}
	}
	for i, name := range strings.Fields("NULL MNT DUMP UMNT UMNTALL EXPORT") {
		if p := nfs3.MountProc(i); p.String() != name || !p.Idempotent() {
			t.Errorf("MOUNT's procedure %d is %v", i, p)
		}
	}
	if p := nfs3.Proc(22); len(names) != nfs3.Procs || p.Args() != nil || p.Results() != nil || p.Idempotent() || p.String() != "procedure 22" {
		t.Errorf("there is a procedure %v", p)
	}
	if p := nfs3.MountProc(6); p.Args() != nil || p.Results() != nil || p.Idempotent() || p.String() != "procedure 6" {
		t.Errorf("there is MOUNT's procedure %v", p)
	}
	if nfs3.Directory.String() != "NF3DIR" || nfs3.FileType(0).String() != "ftype3 0" || nfs3.FileType(8).String() != "ftype3 8" {
		t.Error("types of files have other names")
	}
}

// fuzz decodes bytes as each message of its direction: what can be decoded comes out of
// its encoding again.
func fuzz(t *testing.T, p each, fresh func() nfs3.Codec, data []byte) {
	c := fresh()
	d := xdr.NewDecoder(data)
	if err := c.Decode(d); err != nil {
		return
	}
	if d.At() > len(data) {
		t.Fatalf("%v: %d bytes of %d", p, d.At(), len(data))
	}
	once := encode(c)
	again := fresh()
	d = xdr.NewDecoder(once)
	if err := again.Decode(d); err != nil || d.End() != nil {
		t.Fatalf("%v: %x, which was %x, is no more: %v", p, once, data, err)
	}
	if twice := encode(again); !bytes.Equal(once, twice) {
		t.Fatalf("%v: %x is %x", p, once, twice)
	}
}

func every(p uint8) each {
	if p < nfs3.Procs {
		return nfs3.Proc(p)
	}
	return nfs3.MountProc((p - nfs3.Procs) % nfs3.MountProcs)
}

// seeds adds what is known to be right.
func seeds(f *testing.F, messages []message) {
	for _, m := range messages {
		for p := range uint8(nfs3.Procs + nfs3.MountProcs) {
			if every(p) == m.proc {
				f.Add(p, octets(f, m.octets))
			}
		}
	}
}

func FuzzArguments(f *testing.F) {
	seeds(f, arguments(f))
	f.Fuzz(func(t *testing.T, p uint8, data []byte) { fuzz(t, every(p), every(p).Args, data) })
}

func FuzzResults(f *testing.F) {
	seeds(f, results(f))
	f.Fuzz(func(t *testing.T, p uint8, data []byte) { fuzz(t, every(p), every(p).Results, data) })
}

func TestResultsHaveAStatus(t *testing.T) {
	for p := nfs3.ProcGetAttr; p < nfs3.Procs; p++ {
		r, ok := p.Results().(nfs3.Result)
		if !ok {
			t.Fatalf("%v has results without a status", p)
		}
		if *r.Stat() = nfs3.ErrJukebox; !bytes.HasPrefix(encode(r), []byte{0, 0, 0x27, 0x18}) {
			t.Errorf("%v: %x", p, encode(r))
		}
	}
}
