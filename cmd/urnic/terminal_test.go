package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"urnic/rnic"
	"urnic/ulp/nfs"
)

const (
	esc  = "\x1b]0;title\a\x1b[31m" // sets the title and a color
	bidi = "\u202egpj.exe"          // is read from right to left
	c1   = "\u009b2J"               // clears the terminal
	raw  = "\xff\xfe"               // is no UTF-8
)

func wantPrintable(t *testing.T, what, s string) {
	t.Helper()
	for _, r := range s {
		if !unicode.IsPrint(r) && r != '\n' || r == unicode.ReplacementChar {
			t.Errorf("%s has %q: %q", what, r, s)
			return
		}
	}
}

// What a server calls its files does not reach the terminal as it is, in whatever a command
// prints.
func TestNamesOfServersOnTheTerminal(t *testing.T) {
	dir, local := t.TempDir(), t.TempDir()
	for _, name := range []string{esc, bidi, c1, raw} {
		// What can't be written, because a directory is there.
		do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644), os.MkdirAll(filepath.Join(local, filepath.Base(dir), name, "x"), 0o755))
		do(t, os.Symlink(name, filepath.Join(dir, "link"+name)))
		do(t, os.Mkdir(filepath.Join(dir, "d"+name), 0o755), os.WriteFile(filepath.Join(dir, "d"+name, "f"), nil, 0o644))
	}
	s := startNFSD(t, "--squash", "none", "--export", "/"+filepath.Base(dir)+"="+dir)
	url := s.urls("/" + filepath.Base(dir))["tcp"]
	for _, args := range [][]string{
		{"nfs", "ls", "-lR", url},
		{"nfs", "ls", "--json", "-R", url},
		{"nfs", "get", "-R", "-v", url, local},
		{"nfs", "get", "-R", "--json", url, t.TempDir()},
		{"nfs", "cat", url + "/%1b%5b31m%e2%80%ae"},
		{"nfs", "put", filepath.Join(dir, "d"+esc), url},
		{"nfs", "put", "-R", "-v", filepath.Join(dir, "d"+esc), url},
	} {
		_, out, errOut := urnic(t, nil, args...)
		if len(out)+len(errOut) == 0 {
			t.Errorf("%q prints nothing", args)
		}
		wantPrintable(t, fmt.Sprintf("%q", args), out)
		wantPrintable(t, fmt.Sprintf("%q", args), errOut)
	}
	s.stop(t)
}

// Copies give nobody a right that the original does not, and are as complete.
func TestCopiesKeepPermissions(t *testing.T) {
	dir, local := filepath.Join(t.TempDir(), "tree"), t.TempDir()
	modes := map[string]fs.FileMode{"": 0o750, "private": 0o700, "private/deep": 0o711, "closed": 0o500, "write-only": 0o333, "f": 0o600, "ro": 0o444, "closed/g": 0o400}
	for _, d := range []string{"", "private", "private/deep", "closed", "write-only"} {
		do(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	for _, f := range []string{"f", "ro", "closed/g"} {
		do(t, os.WriteFile(filepath.Join(dir, f), []byte(f), 0o600))
	}
	for name, mode := range modes {
		do(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	t.Cleanup(func() { // for RemoveAll
		_ = os.Chmod(filepath.Join(dir, "closed"), 0o700)
		_ = os.Chmod(filepath.Join(local, "tree", "closed"), 0o700)
	})
	s := startNFSD(t, "--squash", "none", "--export", "/srv="+filepath.Dir(dir))
	url := s.urls("/srv")["tcp"]
	check := func(what, root string) {
		t.Helper()
		for name, mode := range modes {
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil {
				t.Error(err)
				continue
			}
			if got := info.Mode().Perm(); got&^mode != 0 || got&0o700 != mode&0o700 {
				t.Errorf("%s %q: %o, of %o", what, name, got, mode)
			}
		}
	}
	ok(t, "nfs", "get", "-R", url+"/tree", local)
	check("got", filepath.Join(local, "tree"))
	ok(t, "nfs", "put", "-R", dir, url+"/put")
	check("put", filepath.Join(filepath.Dir(dir), "put"))
	_ = os.Chmod(filepath.Join(filepath.Dir(dir), "put", "closed"), 0o700)
	s.stop(t)
}

// What the program at the other end says does not control the terminal either: why it
// rejects a connection, what an error of it is called, or the data that rping shows.
func TestWordsOfPeersOnTheTerminal(t *testing.T) {
	words := esc + bidi + c1 + raw + "\n\r\x00"
	rejecting := peerDevice(t)
	l, err := rejecting.Listen(t.Context(), "127.0.0.1:0")
	do(t, err)
	go func() {
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			_ = r.Reject(context.Background(), []byte(words))
		}
	}()
	message, err := json.Marshal(esc + c1)
	do(t, err)
	service := answering(t, `{"id":1,"error":{"code":"failed","message":`+string(message)+`}}`)
	for _, args := range [][]string{
		{"perf", "client", l.Addr().String()},
		{"perf", "client", "--json", l.Addr().String()},
		{"rping", "-c", "-a", "127.0.0.1", "-p", port(l.Addr())},
		{"rping", "-c", "--json", "-a", "127.0.0.1", "-p", port(l.Addr())},
		{"rpc", "call", l.Addr().String(), "nfs", "3", "--rdma"},
		{"conform", "--profile", "urnic", "--target", service},
	} {
		status, out, errOut := urnic(t, nil, args...)
		if status == 0 || errOut == "" {
			t.Errorf("%q: status %d, stderr %q", args, status, errOut)
		}
		wantPrintable(t, fmt.Sprintf("%q", args), out)
		wantPrintable(t, fmt.Sprintf("%q", args), errOut)
	}
	server, at := serve(t, "127.0.0.1", "-v")
	pingWith(t, peerDevice(t), at, words)
	server.wait(t)
	if out := server.out.String(); !strings.Contains(out, `server ping data: \x1b]0;title\a\x1b[31m\u202egpj.exe`) {
		t.Errorf("rping shows %q", out)
	}
	wantPrintable(t, "rping -v", server.out.String())
	wantPrintable(t, "rping -v", server.errOut.String())
}

// Log records have peers' words only in quotes.
func TestWordsOfPeersInTheLog(t *testing.T) {
	var out bytes.Buffer
	cfg, err := (&deviceFlags{logLevel: "debug"}).config(&out)
	do(t, err)
	cfg.Logger.Debug("a peer "+esc, "error", errors.New(esc+bidi+c1+raw+"\nlevel=ERROR"))
	if out.Len() == 0 || strings.Count(out.String(), "\n") > 1 {
		t.Errorf("%q", out.String())
	}
	wantPrintable(t, "the log", out.String())
}

func peerDevice(t *testing.T) *rnic.Device {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	do(t, err)
	t.Cleanup(func() { do(t, dev.Close()) })
	return dev
}

func port(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// answering listens, and says the same line to all who connect and say something.
func answering(t *testing.T, line string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	do(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
					_, _ = io.WriteString(c, line+"\n")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// pingWith has a server of rping read data of this side's choice.
func pingWith(t *testing.T, dev *rnic.Device, port, data string) {
	t.Helper()
	pd, err := dev.AllocPD()
	do(t, err)
	cq, err := dev.CreateCQ(rnic.CQAttr{})
	do(t, err)
	qp, err := pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
	do(t, err)
	mem := []byte(data)
	mr, err := pd.Register(mem, rnic.RemoteRead)
	do(t, err)
	answer, err := pd.Register(make([]byte, 16), rnic.LocalWrite)
	do(t, err)
	do(t, qp.PostRecv(rnic.RecvWR{ID: 2, SGL: []rnic.SGE{answer.SGE(0, 16)}}), qp.Connect(t.Context(), "127.0.0.1:"+port, rnic.ConnParam{IRD: 1, ORD: 1}))
	target := mr.Remote(0)
	advert := binary.BigEndian.AppendUint64(nil, target.TO)
	advert = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(advert, uint32(target.STag)), uint32(len(mem)))
	do(t, qp.PostSend(rnic.SendWR{ID: 1, Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: advert}))
	for range 2 { // the Send, and the server's answer, which says that it has read
		var wcs [1]rnic.WC
		_, err := cq.Wait(t.Context(), wcs[:])
		do(t, err, wcs[0].Err())
	}
	do(t, qp.Disconnect(t.Context()))
}

// A command keeps the first errors of many.
func TestFailuresAreBounded(t *testing.T) {
	var f failures
	if f.add(nil); f.err() != nil {
		t.Error(f.err())
	}
	for i := range 10 * failuresMost {
		f.add(fmt.Errorf("error %d", i))
	}
	if s := f.err().Error(); len(f.errs) != failuresMost || !strings.HasPrefix(s, "error 0\n") || !strings.HasSuffix(s, "and 900 more errors") {
		t.Errorf("%d errors: %q", len(f.errs), s)
	}
}

// Directories that lie in themselves are left after some.
func TestListerGoesNoDeeperThanItMay(t *testing.T) {
	l := &lister{depth: treeDepthMost}
	if err := l.each(t.Context(), "d", nil); !errors.Is(err, nfs.ErrDepth) {
		t.Error(err)
	}
}

// do ends the test if something fails.
func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Colors are for terminals that show them, and for people who want them.
func TestColorsAreForTerminals(t *testing.T) {
	var terminal, file strings.Builder
	before := isTerminal
	isTerminal = func(w io.Writer) bool { return w == &terminal }
	t.Cleanup(func() { isTerminal = before })
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if !showsColors(&terminal) || showsColors(&file) {
		t.Error("a terminal shows no colors, or a file does")
	}
	t.Setenv("TERM", "dumb")
	if showsColors(&terminal) {
		t.Error("a dumb terminal shows colors")
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	if showsColors(&terminal) {
		t.Error("there are colors in spite of NO_COLOR")
	}
}
