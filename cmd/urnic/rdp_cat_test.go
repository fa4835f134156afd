package main

import (
	"io"
	"os"
	"slices"
	"testing"
)

// Cat moves what is read to the other side, and ends when the side that has connected has no more.
func TestRDPCat(t *testing.T) {
	ownRuntime(t)
	from, content := rdpContent(t, 100_000)
	for _, mode := range []string{"--unsequenced=false", "--unsequenced", "--stream"} {
		port := ownPort(t)
		r, w := io.Pipe()
		listen := startWith(t, r, slices.DeleteFunc([]string{"rdp", "cat", "-l", mode, "127.0.0.1:" + port}, func(s string) bool { return s == "--unsequenced" })...)
		listening(t, "cat")
		f, err := os.Open(from)
		do(t, err)
		if mode == "--stream" { // each side ends by itself
			go func() {
				listen.out.wait(t, string(content))
				_, _ = w.Write([]byte("answer"))
				w.Close()
			}()
		}
		status, out, errOut := urnic(t, f, "rdp", "cat", mode, "127.0.0.1:"+port)
		f.Close()
		want := ""
		if mode == "--stream" {
			want = "answer"
		}
		if status != 0 || errOut != "" || out != want {
			t.Errorf("%s: status %d, stderr %q, %d bytes", mode, status, errOut, len(out))
		}
		listen.end(t)
		w.Close()
		if listen.out.String() != string(content) {
			t.Errorf("%s: %d bytes have come", mode, len(listen.out.String()))
		}
	}
	// An interrupt ends either side, and the other one knows.
	for _, mode := range []string{"--unsequenced=false", "--stream"} {
		for _, connected := range []bool{false, true} {
			port := ownPort(t)
			r, w := io.Pipe()
			listen := startWith(t, r, "rdp", "cat", "-l", mode, "127.0.0.1:"+port)
			listening(t, "cat")
			r2, w2 := io.Pipe()
			ends := []*process{listen}
			if connected {
				ends = append(ends, startWith(t, r2, "rdp", "cat", mode, "127.0.0.1:"+port))
				_, err := w2.Write([]byte("hello\n"))
				do(t, err)
				listen.out.wait(t, "hello\n")
			}
			last := ends[len(ends)-1]
			last.interrupt()
			if last.wait(t); last.status != 130 || last.errOut.String() != "urnic: interrupted\n" {
				t.Errorf("%s: status %d, stderr %q", mode, last.status, last.errOut.String())
			}
			w.Close()
			if listen.wait(t); connected && listen.status != 1 {
				t.Errorf("%s: the other side: status %d, stderr %q", mode, listen.status, listen.errOut.String())
			}
			w2.Close()
		}
	}
}
