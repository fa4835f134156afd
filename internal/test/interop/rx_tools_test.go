//go:build interop

package interop

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/internal/test/ownnet"
	"urnic/ulp/rx"
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/afsd"
	"urnic/ulp/rx/afs/cb"
	"urnic/ulp/rx/afs/fs"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxudp"
	"urnic/ulp/rx/secure"
)

// TestRxToolsOfOpenAFS has OpenAFS's tools at servers of ours.
func TestRxToolsOfOpenAFS(t *testing.T) {
	t.Parallel()
	ownnet.Run(t, func(t *testing.T) {
		a := openAFSCell(t, "cell", afsIPv4)
		serveCell(t, a.addr)
		t.Run("pts", a.pts)
		t.Run("udebug", a.udebug)
		t.Run("vos", a.vos)
		t.Run("bos", a.bos)
		t.Run("xstat", a.xstat)
	}, afsIPv4)
}

// serveCell serves a cell at an address, with a volume "files", and a client of files.
func serveCell(t *testing.T, addr netip.Addr) *afsd.Cell {
	t.Helper()
	cell, err := afsd.New(afsd.Config{
		Name: "rx.test", Addr: addr, Security: []secure.Server{rxServer(t, rxkad.Clear)}, Administrators: []string{"rxadmin"},
		Admin: func(c secure.Caller) bool { return c.Name == rxkad.Superuser && c.Realm == "" || c.Name == "rxadmin" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cell.AddVolume(fs.VolumeConfig{Name: "files"}); err != nil {
		t.Fatal(err)
	}
	if err := cell.Serve(func(port uint16, services []rx.Service) (rx.Endpoint, error) {
		return openRx(t, rxudp.Config{Addr: netip.AddrPortFrom(addr, port), Services: services}), nil
	}); err != nil {
		t.Fatal(err)
	}
	openRx(t, rxudp.Config{Addr: netip.AddrPortFrom(addr, afs.PortCallback), Services: []rx.Service{
		{ID: afs.ServiceCallback, Handler: rx.Stream(cb.NewMux(cb.Config{Cell: cb.Cell{Name: "rx.test"}}).Serve)},
	}})
	return cell
}

// wantTool runs a tool, which must succeed and print some lines.
func (a *openAFS) wantTool(t *testing.T, command string, lines ...string) {
	t.Helper()
	out, err := a.tool(strings.Fields(command)...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	wantLines(t, out, lines...)
}

// wantRefusal runs a tool, which must fail and say why.
func (a *openAFS) wantRefusal(t *testing.T, command, why string) {
	t.Helper()
	out, err := a.tool(strings.Fields(command)...)
	if err == nil || !strings.Contains(out, why) {
		t.Errorf("%s: %v, and not %q\n%s", command, err, why, out)
	}
}

func (a *openAFS) pts(t *testing.T) {
	a.wantTool(t, "pts listmax -localauth", "Max user id is 0 and max group id is -205.")
	a.wantTool(t, "pts createuser alice -localauth", "User alice has id 1")
	a.wantTool(t, "pts createuser bob 77 -localauth", "User bob has id 77")
	a.wantTool(t, "pts creategroup system:friends -localauth", "group system:friends has id -206")
	a.wantTool(t, "pts adduser alice system:friends -localauth")
	a.wantTool(t, "pts membership alice -localauth", "Groups alice (id: 1) is a member of: system:friends")
	a.wantTool(t, "pts membership system:friends -localauth", "Members of system:friends (id: -206) are: alice")
	a.wantTool(t, "pts examine alice -localauth", "Name: alice, id: 1, owner: system:administrators, creator: system:administrators,")
	a.wantTool(t, "pts listentries -users -groups -localauth", "alice 1 -204 -204", "bob 77 -204 -204", "system:friends -206 -204 -204")
	a.wantTool(t, "pts rename bob robert -localauth")
	a.wantTool(t, "pts examine 77 -noauth", "Name: robert")
	a.wantTool(t, "pts removeuser alice system:friends -localauth")
	a.wantTool(t, "pts delete alice robert system:friends -localauth")
	a.wantRefusal(t, "pts createuser eve -noauth", "Permission denied")
	a.wantRefusal(t, "pts examine alice -localauth", "User or group doesn't exist")
	a.wantRefusal(t, "pts listentries -noauth", "Permission denied")
}

func (a *openAFS) udebug(t *testing.T) {
	for _, port := range []string{"7002", "7003"} {
		a.wantTool(t, "udebug "+afsIPv4+" "+port+" -long", "Host's addresses are: "+afsIPv4, "I am sync site forever (1 server)", "Recovery state 1f")
	}
}

// vos moves a volume of several MiB in both directions, at each level that it has.
func (a *openAFS) vos(t *testing.T) {
	a.wantTool(t, "vos listaddrs -noresolve -localauth", afsIPv4)
	a.wantTool(t, "vos partinfo "+afsIPv4+" -localauth", "Free space on partition /vicepa:")
	a.wantTool(t, "vos create "+afsIPv4+" a v1 -localauth", "Volume 536870915 created on partition /vicepa of "+afsIPv4)
	a.wantRefusal(t, "vos create "+afsIPv4+" a v1 -localauth", "already exists")
	a.wantTool(t, "vos examine v1 -localauth -noresolve", "v1 536870915 RW", "On-line", "number of sites -> 1 server "+afsIPv4+" partition /vicepa RW Site")
	a.wantTool(t, "vos dump v1 -file /tmp/v1 -localauth", "Dumped volume v1 in file /tmp/v1")
	content := make([]byte, 5<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(content) // it never fails
	a.writeFile(t, "v2", dumpWithFile(t, a.readFile(t, "v1"), content))
	for name, level := range map[string]string{"clear": "", "crypt": " -encrypt"} {
		a.wantTool(t, "vos restore "+afsIPv4+" a "+name+" -file /tmp/v2 -localauth"+level, "Restored volume "+name+" on "+afsIPv4+" /vicepa")
		a.wantTool(t, "vos dump "+name+" -file /tmp/"+name+" -localauth"+level, "Dumped volume "+name)
		if !bytes.Contains(a.readFile(t, name), content) {
			t.Errorf("the dump of volume %s is not what it was restored from", name)
		}
	}
	a.wantTool(t, "vos listvol "+afsIPv4+" -noauth", "Total number of volumes on server "+afsIPv4+" partition /vicepa: 4", "Total volumes onLine 4 ; Total volumes offLine 0 ; Total busy 0")
	a.wantTool(t, "vos listvldb -localauth -noresolve", "v1 RWrite: 536870915 number of sites -> 1 server "+afsIPv4+" partition /vicepa RW Site", "Total entries: 4")
	a.wantTool(t, "vos rename v1 v3 -localauth")
	a.wantTool(t, "vos status "+afsIPv4+" -localauth", "No active transactions on "+afsIPv4)
	a.wantTool(t, "vos remove "+afsIPv4+" a v3 -localauth", "Volume 536870915 on partition /vicepa server")
	a.wantRefusal(t, "vos examine v3 -localauth", "no such entry")
	a.wantRefusal(t, "vos remove "+afsIPv4+" a clear -noauth", "Error in vos remove command")
}

func (a *openAFS) bos(t *testing.T) {
	a.wantTool(t, "bos status "+afsIPv4+" -localauth", "Instance ptserver, currently running normally", "Instance fs, currently running normally")
	a.wantTool(t, "bos status "+afsIPv4+" fs -long -noauth", "Command 1 is 'fileserver'", "Command 2 is 'volserver'")
	a.wantTool(t, "bos listusers "+afsIPv4+" -localauth", "SUsers are: rxadmin")
	a.wantTool(t, "bos adduser "+afsIPv4+" alice -localauth")
	a.wantTool(t, "bos listusers "+afsIPv4+" -noauth", "SUsers are: rxadmin alice")
	a.wantTool(t, "bos removeuser "+afsIPv4+" alice -localauth")
	a.wantTool(t, "bos listhosts "+afsIPv4+" -localauth", "Cell name is rx.test", "Host 1 is "+afsIPv4)
	a.wantTool(t, "bos create "+afsIPv4+" sleeper simple /bin/sleep -localauth")
	a.wantTool(t, "bos status "+afsIPv4+" sleeper -localauth", "Instance sleeper, currently running normally")
	a.wantTool(t, "bos stop "+afsIPv4+" sleeper -localauth")
	a.wantTool(t, "bos status "+afsIPv4+" sleeper -localauth", "Instance sleeper, disabled, currently shutdown")
	a.wantTool(t, "bos delete "+afsIPv4+" sleeper -localauth")
	a.wantTool(t, "bos getrestart "+afsIPv4+" -localauth", "restarts")
	a.wantRefusal(t, "bos stop "+afsIPv4+" fs -noauth", "you are not authorized for this operation")
}

// xstat reads the statistics of the file server and of the client of files.
func (a *openAFS) xstat(t *testing.T) {
	for _, test := range []struct {
		collection int
		lines      []string
	}{
		{0, []string{"AFS_XSTATSCOLL_CALL_INFO (coll 0) for FS rxpeer [Probe 1,"}},
		{1, []string{"AFS_XSTATSCOLL_PERF_INFO (coll 1) for FS rxpeer [Probe 1,", "1 numPerfCalls", "0 vcache_L_Entries", "sysname_ID"}},
		{2, []string{"AFS_XSTATSCOLL_FULL_PERF_INFO (coll 2) for FS rxpeer [Probe 1,", "FetchData"}},
		{3, []string{"0 DeleteFiles", "0 AddCallBack", "0 CBsTimedOut"}},
	} {
		a.wantTool(t, fmt.Sprintf("xstat_fs_test -fsname %s -collID %d -onceonly", afsIPv4, test.collection), test.lines...)
	}
	for collection, name := range map[int]string{0: "CALL", 2: "FULL_PERF"} {
		a.wantTool(t, fmt.Sprintf("xstat_cm_test -cmname %s -collID %d -onceonly", afsIPv4, collection),
			fmt.Sprintf("AFSCB_XSTATSCOLL_%s_INFO (coll %d) for CM rxpeer [Probe 1,", name, collection))
	}
}

// path is where a file in the tools' /tmp is for us.
func (a *openAFS) path(t *testing.T, name string) string {
	t.Helper()
	dir, err := rxPeers()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join("/proc", a.pid, "root", dir, "openafs/tmp", name)
}

func (a *openAFS) readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(a.path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (a *openAFS) writeFile(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(a.path(t, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}
