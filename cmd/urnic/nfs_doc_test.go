package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A nfsDoc runs the commands of docs/nfs.md: on free ports, and in a directory in place of
// /srv/data.
type nfsDoc struct {
	t     *testing.T
	dir   string
	ports map[string]string // a free one for each that the page has
}

// port returns the free port for one of the page's.
func (d *nfsDoc) port(p string) string {
	if d.ports[p] == "" {
		d.ports[p] = ownPort(d.t)
	}
	return d.ports[p]
}

// url returns a URL of the page as it is here.
func (d *nfsDoc) url(s string) string {
	scheme, rest, _ := strings.Cut(s, "://")
	address, name, _ := strings.Cut(rest, "/")
	host, port, ok := strings.Cut(address, ":")
	if !ok {
		port = map[string]string{"nfs": "2049", "nfs+rdma": "20049"}[scheme]
	}
	name, mount, ok := strings.Cut(name, "?mountport=")
	if !ok {
		mount = "2049"
	}
	s = scheme + "://" + host + ":" + d.port(port) + strings.Replace("/"+name, "/srv/data", filepath.ToSlash(d.dir), 1)
	if scheme == "nfs+rdma" {
		s += "?mountport=" + d.port(mount)
	}
	return s
}

// args returns a command's arguments as they are here.
func (d *nfsDoc) args(command string) []string {
	args := strings.Fields(command)
	for i, arg := range args {
		switch {
		case strings.Contains(arg, "://"):
			args[i] = d.url(arg)
		case strings.HasPrefix(arg, ":"):
			args[i] = "127.0.0.1:" + d.port(arg[1:])
		default:
			args[i] = strings.Replace(arg, "/srv/data", d.dir, 1)
		}
	}
	switch {
	case args[0] == "nfsd":
		for flag, port := range map[string]string{"--tcp": "2049", "--rdma": "20049"} {
			if !slices.Contains(args, flag) {
				args = append(args, flag, "127.0.0.1:"+d.port(port))
			}
		}
	case args[1] == "bench": // shorter than a reader's
		args = append(args, "--duration", "10ms", "--file-size", "1M")
	}
	return args
}

// The commands of docs/nfs.md do what a reader hopes for. A server is there until the next
// one wants its ports.
func TestCommandsOfTheNFSPageSucceed(t *testing.T) {
	text, err := os.ReadFile("../../docs/nfs.md")
	if err != nil {
		t.Fatal(err)
	}
	d := &nfsDoc{t: t, dir: filepath.Join(t.TempDir(), "data"), ports: map[string]string{}}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "file"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	servers := map[string]*process{} // by what is in front of the command's flags
	commands := 0
	block := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			block = !block
		}
		command, is := strings.CutPrefix(line, "$ urnic ")
		if !is || !block {
			continue
		}
		commands++
		command, behind := strings.CutSuffix(strings.TrimSpace(command), " &")
		args := d.args(command)
		if !behind {
			if out := ok(t, args...); out == "" && (args[1] == "ls" || args[1] == "cat" || args[1] == "bench") {
				t.Errorf("urnic %s prints nothing", command)
			}
			continue
		}
		address := args[slices.Index(args, "--tcp")+1]
		if old := servers[address]; old != nil {
			old.interrupt()
			old.end(t)
		}
		servers[address] = start(t, args...)
		servers[address].out.wait(t, "listening at ")
	}
	if commands < 12 {
		t.Errorf("the page has only %d commands", commands)
	}
	for _, s := range servers {
		s.interrupt()
		s.end(t)
	}
}
