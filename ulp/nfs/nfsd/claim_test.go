package nfsd_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
)

// Who a test's connection is made by.
var (
	remotePeer  = nfsd.Peer{}
	alicesPeer  = nfsd.Peer{Local: true, Known: true, UID: 1000, Groups: []uint32{100, 101}}
	rootsPeer   = nfsd.Peer{Local: true, Known: true}
	unknownPeer = nfsd.Peer{Local: true}
)

// a connection that a peer has made, as a transport tells of it.
func connection(t *testing.T, s *nfsd.Server, remote string) oncrpc.Exchange {
	t.Helper()
	x := oncrpc.Exchange{
		Local:  net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.9:2049")),
		Remote: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(remote)),
	}
	a, err := s.Admit(x.Local, x.Remote)
	if err != nil {
		t.Fatal(err)
	}
	x.Peer, x.Account = a.Peer, a.Account
	return x
}

// Calls are taken from privileged ports, and from processes of this host as the users that
// they are. All others, and all other claims, are refused, by MOUNT as well.
func TestWhoseCallsAreTaken(t *testing.T) {
	none := errors.New("nobody knows")
	for name, tc := range map[string]struct {
		peer             nfsd.Peer
		err              error
		port             string
		insecure         bool
		alice, bob, root bool // whose calls are taken
		anonymous        bool
	}{
		"another host":                          {peer: remotePeer, port: "40000"},
		"another host's first port of users":    {peer: remotePeer, port: "1024"},
		"another host's last privileged port":   {peer: remotePeer, port: "1023", alice: true, bob: true, root: true, anonymous: true},
		"another host, insecure":                {peer: remotePeer, port: "40000", insecure: true, alice: true, bob: true, root: true, anonymous: true},
		"a user":                                {peer: alicesPeer, port: "40000", alice: true, anonymous: true},
		"a user at a privileged port":           {peer: alicesPeer, port: "700", alice: true, anonymous: true},
		"a user, insecure":                      {peer: alicesPeer, port: "40000", insecure: true, alice: true, bob: true, root: true, anonymous: true},
		"root":                                  {peer: rootsPeer, port: "40000", alice: true, bob: true, root: true, anonymous: true},
		"somebody unknown":                      {err: none, port: "40000"},
		"somebody unknown, at a privileged one": {err: none, port: "700"},
		"somebody unknown, insecure":            {err: none, port: "40000", insecure: true, alice: true, bob: true, root: true, anonymous: true},
	} {
		t.Run(name, func(t *testing.T) {
			identify := func(_, _ net.Addr) (nfsd.Peer, error) { return tc.peer, tc.err }
			b := on(t, nfsd.Config{Identify: identify}, nfsd.Export{Squash: nfsd.SquashNone, Insecure: tc.insecure})
			file := b.create(root, b.root, "file", 0o600)
			x := connection(t, b.server, "192.0.2.7:"+tc.port)
			b.send = b.over(x)
			for _, who := range []struct {
				name string
				*user
				ok bool
			}{{"alice", &user{uid: 1000, gid: 100}, tc.alice}, {"bob", bob, tc.bob}, {"root", root, tc.root}, {"nobody", nil, tc.anonymous}} {
				want, mount := nfs3.OK, nfs3.MountOK
				if !who.ok {
					want, mount = nfs3.ErrAcces, nfs3.MountErrAcces
				}
				b.want(who.name, do[nfs3.GetAttrRes](b, who.user, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: file}), want)
				var r nfs3.MountRes
				if err := b.callMount(who.user, nfs3.MountProcMnt, &nfs3.MountArgs{Path: "/tree"}, &r); err != nil || r.Status != mount {
					t.Errorf("%s mounts: %v, %v; want %v", who.name, err, r.Status, mount)
				}
			}
		})
	}
}

// Where a local user can't be known, all claims come to the anonymous user.
func TestLocalUsersThatCantBeKnownAreNobody(t *testing.T) {
	identify := func(_, _ net.Addr) (nfsd.Peer, error) { return unknownPeer, nil }
	b := on(t, nfsd.Config{Identify: identify}, nfsd.Export{Squash: nfsd.SquashNone})
	mine := b.create(alice, b.root, "file", 0o600)
	b.send = b.over(connection(t, b.server, "127.0.0.1:700"))
	for _, who := range []*user{root, alice, bob, nil} {
		b.want("READ", b.read(who, mine, 0, 1), nfs3.ErrAcces)
	}
	if a := b.getAttr(b.create(alice, b.root, "new", 0o600)); a.UID != nfsd.Nobody {
		t.Errorf("a new file is that of %d", a.UID)
	}
}

// A local user is in the groups that this host says, whatever a call claims.
func TestLocalUsersClaimNoGroups(t *testing.T) {
	who := alicesPeer
	identify := func(_, _ net.Addr) (nfsd.Peer, error) { return who, nil }
	b := on(t, nfsd.Config{Identify: identify}, nfsd.Export{Squash: nfsd.SquashNone})
	files := map[uint32]nfs3.Handle{}
	for _, gid := range []uint32{42, 100, 101} {
		h := b.create(root, b.root, string(rune('a'+gid%26)), 0o640)
		ok(b, b.setAttr(root, h, nfs3.SetAttr{GID: &gid}))
		files[gid] = h
	}
	b.send = b.over(connection(t, b.server, "127.0.0.1:40000"))
	for _, claim := range []*user{
		{uid: 1000, gid: 42, groups: []uint32{101, 42, 100}},
		{uid: 1000, gid: 101, groups: []uint32{42, 100}},
		{uid: 1000, gid: 100, groups: []uint32{101}},
	} {
		for gid, h := range files {
			want := nfs3.OK
			if gid == 42 {
				want = nfs3.ErrAcces
			}
			b.want("READ of a file of that group", b.read(claim, h, 0, 1), want)
		}
	}
	b.want("a group that was not claimed", b.read(&user{uid: 1000, gid: 100}, files[101], 0, 1), nfs3.ErrAcces)
	if a := b.getAttrAs(alice, b.create(&user{uid: 1000, gid: 42}, b.root, "new", 0o600)); a.GID != 100 {
		t.Errorf("a new file is of group %d", a.GID)
	}
	who = nfsd.Peer{Local: true, Known: true, UID: 1000} // of whom no groups are known
	b.send = b.over(connection(t, b.server, "127.0.0.1:40000"))
	if a := b.getAttrAs(alice, b.create(&user{uid: 1000, gid: 0, groups: []uint32{42}}, b.root, "another", 0o600)); a.GID != nfsd.Nobody {
		t.Errorf("a new file is of group %d", a.GID)
	}
}

func (b *bed) getAttrAs(who *user, h nfs3.Handle) nfs3.Attr {
	b.Helper()
	return ok(b, do[nfs3.GetAttrRes](b, who, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: h})).Attr
}

// Peers that no export is for are refused before they say anything; local users have an
// account each.
func TestPeersAreAdmitted(t *testing.T) {
	who := remotePeer
	b := bare(t, nfsd.Config{Identify: func(_, _ net.Addr) (nfsd.Peer, error) { return who, nil }})
	for path, allowed := range map[string]string{"/a": "192.0.2.0/24", "/b": "2001:db8::/32"} {
		tree := memfs.New(memfs.Options{})
		t.Cleanup(func() { _ = tree.Close() })
		if err := b.server.AddExport(nfsd.Export{Path: path, FS: tree, Allowed: []netip.Prefix{netip.MustParsePrefix(allowed)}}); err != nil {
			t.Fatal(err)
		}
	}
	admit := func(remote string) (oncrpc.Admission, error) {
		return b.server.Admit(nil, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(remote)))
	}
	for remote, want := range map[string]bool{
		"192.0.2.7:1": true, "[::ffff:192.0.2.7]:1": true, "[2001:db8::1]:1": true, "198.51.100.1:1": false, "[2001:db9::1]:1": false, "127.0.0.1:1": false,
	} {
		if a, err := admit(remote); (err == nil) != want || !want && !errors.Is(err, nfsd.ErrPeer) || a.Account != "" {
			t.Errorf("%s: %+v, %v", remote, a, err)
		}
	}
	accounts := map[string]bool{}
	for _, who = range []nfsd.Peer{alicesPeer, rootsPeer, {Local: true, Known: true, UID: 7}} {
		a, err := admit("192.0.2.7:1")
		if err != nil {
			t.Fatal(err)
		}
		accounts[a.Account] = true
	}
	if len(accounts) != 3 || accounts[""] {
		t.Errorf("three users have the accounts %v", accounts)
	}
	b.server.RemoveExport("/b")
	if _, err := admit("[2001:db8::1]:1"); !errors.Is(err, nfsd.ErrPeer) {
		t.Errorf("an export that is gone still admits: %v", err)
	}
}

// ownerless is a tree whose files belong to whom the server is.
type ownerless struct{ *memfs.FS }

func (o ownerless) Features() vfs.Features {
	f := o.FS.Features()
	f.SetOwner = false
	return f
}

// A server that is not root takes its own user for who it is, and all others for nobody,
// who make nothing: it would belong to that user.
func TestOthersAreNobody(t *testing.T) {
	const user1000 = 1000
	fs := ownerless{memfs.New(memfs.Options{Mode: 0o777, UID: user1000, GID: 100})}
	t.Cleanup(func() { _ = fs.Close() })
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashOthers, User: user1000})
	secret := b.create(alice, b.root, "secret", 0o600)
	shared := b.create(alice, b.root, "shared", 0o646)
	b.want("its user", b.read(alice, secret, 0, 1), nfs3.OK)
	for name, who := range map[string]*user{"bob": bob, "root": root, "nobody": nil, "bob in a group of hers": {uid: 1001, gid: 100}} {
		b.want(name+" reads", b.read(who, secret, 0, 1), nfs3.ErrAcces)
		b.want(name+" writes what all may", b.write(who, shared, 0, "x"), nfs3.OK)
		b.want(name+" sets its mode", b.setAttr(who, shared, nfs3.SetAttr{Mode: new(uint32(0o4777))}), nfs3.ErrPerm)
		args := &nfs3.CreateArgs{Where: at(b.root, "new"), Attr: nfs3.SetAttr{Mode: new(uint32(0o4777))}}
		b.want(name+" makes a file", do[nfs3.NewRes](b, who, nfs3.ProcCreate, args), nfs3.ErrAcces)
		b.want(name+" makes a directory", do[nfs3.NewRes](b, who, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at(b.root, "new")}), nfs3.ErrAcces)
		b.want(name+" makes a link", do[nfs3.NewRes](b, who, nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at(b.root, "new"), Path: "x"}), nfs3.ErrAcces)
	}

	// The others are not the user even if that is who is nobody.
	n := on(t, nfsd.Config{}, nfsd.Export{Squash: nfsd.SquashOthers, User: nfsd.Nobody})
	mine := n.create(&user{uid: nfsd.Nobody, gid: 1}, n.root, "file", 0o600)
	n.want("another user", n.read(bob, mine, 0, 1), nfs3.ErrAcces)
}

// Who is taken for somebody else makes no programs that run as somebody else.
func TestSquashedCallersSetNoPrivileges(t *testing.T) {
	const all = 0o6777
	made := func(b *bed, who *user) map[string]uint32 {
		modes := map[string]uint32{}
		set := nfs3.SetAttr{Mode: new(uint32(all))}
		note := func(what string, h nfs3.Handle) { modes[what] = b.getAttr(h).Mode }
		file := ok(b, do[nfs3.NewRes](b, who, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "file"), Attr: set})).Object.Handle
		note("CREATE", file)
		note("MKDIR", ok(b, do[nfs3.NewRes](b, who, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at(b.root, "dir"), Attr: set})).Object.Handle)
		note("MKNOD", ok(b, do[nfs3.NewRes](b, who, nfs3.ProcMknod, &nfs3.MknodArgs{Where: at(b.root, "fifo"), Type: nfs3.FIFO, Attr: set})).Object.Handle)
		ok(b, b.setAttr(who, file, set))
		note("SETATTR", file)
		return modes
	}
	for name, tc := range map[string]struct {
		squash nfsd.Squash
		who    *user
		mode   uint32
	}{
		"root is nobody":      {nfsd.SquashRoot, root, 0o777},
		"all are":             {nfsd.SquashAll, alice, 0o777},
		"callers without one": {nfsd.SquashNone, nil, 0o777},
		"others":              {nfsd.SquashOthers, bob, 0o777},
		"a group is":          {nfsd.SquashRoot, &user{uid: 1000, gid: 0}, 0o4777},
		"a user":              {nfsd.SquashRoot, alice, all},
		"root":                {nfsd.SquashNone, root, all},
	} {
		b := on(t, nfsd.Config{}, nfsd.Export{Squash: tc.squash, User: 1000})
		for what, mode := range made(b, tc.who) {
			if mode != tc.mode {
				t.Errorf("%s: %s makes mode %04o; want %04o", name, what, mode, tc.mode)
			}
		}
	}
	// What belongs to whom the server is, is nobody's to make privileged.
	fs := ownerless{memfs.New(memfs.Options{Mode: 0o777})}
	t.Cleanup(func() { _ = fs.Close() })
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashRoot})
	if h := b.create(bob, b.root, "file", all); b.getAttr(h).Mode != 0o777 {
		t.Errorf("a file that belongs to the server has mode %04o", b.getAttr(h).Mode)
	}
	// A directory keeps the bit that hands its group down.
	d := on(t, nfsd.Config{}, nfsd.Export{FS: memfs.New(memfs.Options{Mode: 0o2777, GID: nfsd.Nobody}), Squash: nfsd.SquashAll})
	dir := d.mkdir(bob, d.root, "dir", 0o777)
	ok(d, d.setAttr(bob, dir, nfs3.SetAttr{Mode: new(uint32(0o2755))}))
	if m := d.getAttr(dir).Mode; m != 0o2755 {
		t.Errorf("a directory below one that hands its group down has mode %04o", m)
	}
}
