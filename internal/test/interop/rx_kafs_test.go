//go:build interop

package interop

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"urnic/ulp/rx"
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/pt"
	"urnic/ulp/rx/afs/vl"
	"urnic/ulp/rx/afs/vol"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxrelay"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// kafs has Linux's kAFS use a volume of OpenAFS's file server. It finds that by a volume
// location server of ours, which names a relay of ours, and the file server calls kAFS back
// through that relay.
func kafs(t *testing.T) {
	a := startOpenAFS(t, upperIPv4)
	c := vol.NewClient(rpc.Over(a.dial(t, afs.PortVolume, afs.ServiceVolume, rxSecurity{level: rxkad.Crypt}).Begin))
	id := a.newVolume(t, c, "kafs", 1<<29+77, nil)
	a.makeAdministrator(t, kafsUser().Name)
	relay := netip.MustParseAddr(lowerIPv4)
	locate(t, relay, id)
	files := openRelay(t, netip.AddrPortFrom(relay, afs.PortFile), netip.AddrPortFrom(a.addr, afs.PortFile))
	useByKAFS(t, "relay.test", lowerIPv4, "kafs")
	if s := files.Stats(); s.Offered < 50 || s.Calls < 50 {
		t.Errorf("few calls have gone through the relay: %+v", s)
	}
}

// kafsAtOurs has it use a volume of a file server of ours.
func kafsAtOurs(t *testing.T) {
	serveCell(t, netip.MustParseAddr(upperIPv4))
	useByKAFS(t, "ours.test", upperIPv4, "files")
}

// useByKAFS has kAFS do to a volume what programs do to a file system.
func useByKAFS(t *testing.T, cell, server, volume string) {
	t.Helper()
	mounted := "/lab/host/rx/kafs.sh %s " + cell + " " + server + " " + volume + " bash -ec '%s'"
	const program = `
head -c 1000000 /dev/urandom >/tmp/f
cp /tmp/f f
echo 3 >/proc/sys/vm/drop_caches
cmp /tmp/f f && echo read
mkdir d
for i in $(seq 20); do echo $i >d/file$i; done
mv d/file7 d/other
rm d/file8
ln -s other d/link
ls d | wc -l
echo 3 >/proc/sys/vm/drop_caches
cat d/link
rm -r d f
ls | wc -l`
	out, err := theGuest.tryFor(2*time.Minute, fmt.Sprintf(mounted, "-k "+rxKey(t, rxSecurity{}, kafsUser()), program))
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, theGuest.complaints())
	}
	if want := "read 20 7 0"; strings.Join(strings.Fields(out), " ") != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out, err := theGuest.try(t, fmt.Sprintf(mounted, "", "echo x >x")); err == nil {
		t.Errorf("anybody may write: %s", out)
	}
}

// kafsUser is who kAFS is. A volume's root belongs to the administrators at first.
func kafsUser() rxkad.Contents {
	says := rxUser()
	says.Name = "rxadmin"
	return says
}

// makeAdministrator makes a user who is an administrator.
func (a *openAFS) makeAdministrator(t *testing.T, name string) {
	t.Helper()
	c := pt.NewClient(rpc.Over(a.dial(t, afs.PortPT, afs.ServicePT, rxSecurity{level: rxkad.Crypt}).Begin))
	id, err := c.CreateUser(t.Context(), name, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddToGroup(t.Context(), id, pt.Administrators); err != nil {
		t.Fatal(err)
	}
}

// locate serves a location database, in which a server at an address has a volume.
func locate(t *testing.T, server netip.Addr, id uint32) {
	t.Helper()
	db := vl.NewDB(nil)
	if err := db.Register(vl.Registration{UUID: afs.UUID{7}, Addrs: []afs.Addr{afs.AddrOf(server)}}); err != nil {
		t.Fatal(err)
	}
	site := vl.Site{Server: afs.AddrOf(server), Flags: vl.SiteRW}
	if err := db.Create(vl.Entry{Name: "kafs", Sites: []vl.Site{site}, IDs: [3]uint32{id, id + 1, id + 2}, Flags: vl.HasReadWrite}); err != nil {
		t.Fatal(err)
	}
	openRx(t, rxudp.Config{Addr: netip.AddrPortFrom(server, afs.PortVL), Services: []rx.Service{{
		ID: afs.ServiceVL, Handler: rx.Stream(vl.NewMux(db, vl.Config{}).Serve), Security: []secure.Server{rxServer(t, rxkad.Clear)},
	}}})
}

// A fileRelay passes the calls of clients on to a file server, and what that calls to the client
// that has called last.
type fileRelay struct {
	*rxudp.Endpoint
	t      *testing.T
	server netip.AddrPort

	mu     sync.Mutex
	client netip.AddrPort
	conns  map[connTo]rx.Conn
}

type connTo struct {
	peer  netip.AddrPort
	known bool // as kafsUser
}

// openRelay opens a relay at an address. At the server it is kafsUser for whoever has a ticket.
func openRelay(t *testing.T, at, server netip.AddrPort) *fileRelay {
	t.Helper()
	r := &fileRelay{t: t, server: server, conns: map[connTo]rx.Conn{}}
	r.mu.Lock() // until there is an endpoint
	defer r.mu.Unlock()
	r.Endpoint = openRx(t, rxudp.Config{Addr: at, Services: []rx.Service{{
		ID: afs.ServiceFile, Handler: rxrelay.New(r.begin), Workers: 64, Security: []secure.Server{rxServer(t, rxkad.Clear)},
	}}})
	return r
}

// begin begins the call that another one is passed on by.
func (r *fileRelay) begin(ctx context.Context, c rx.ServerCall) (rx.Call, error) {
	conn, err := r.conn(ctx, c)
	if err != nil {
		return nil, err
	}
	return conn.Begin(ctx)
}

func (r *fileRelay) conn(ctx context.Context, c rx.ServerCall) (rx.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var cfg rx.DialConfig
	to := connTo{r.server, c.Caller().Verified}
	switch {
	case c.Peer() == r.server:
		to = connTo{peer: r.client}
	default:
		r.client = c.Peer()
		cfg.Security = rxSecurity{none: !to.known, level: rxkad.Crypt}.client(r.t, kafsUser())
	}
	if conn := r.conns[to]; conn != nil {
		return conn, nil
	}
	conn, err := r.Dial(ctx, to.peer, c.Service(), cfg)
	if err == nil {
		r.conns[to] = conn
	}
	return conn, err
}
