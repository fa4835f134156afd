package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urnic/conformance/service"
	"urnic/internal/test/leakcheck"
	"urnic/rnic"
)

// A raw client speaks lines.
type raw struct {
	net.Conn
	r *bufio.Reader
}

func dialRaw(t *testing.T, address string) *raw {
	t.Helper()
	c, err := net.Dial("tcp", address)
	check(t, err)
	check(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { c.Close() })
	return &raw{c, bufio.NewReader(c)}
}

// says sends bytes.
func (c *raw) says(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	check(t, err)
}

// hears receives an answer.
func (c *raw) hears(t *testing.T) (a service.Answer) {
	t.Helper()
	line, err := c.r.ReadBytes('\n')
	check(t, err)
	check(t, json.Unmarshal(line, &a))
	return a
}

// isOver fails the test unless the server has hung up.
func (c *raw) isOver(t *testing.T) {
	t.Helper()
	if line, err := c.r.ReadBytes('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("the session goes on: %s, %v", line, err)
	}
}

const helloLine = `{"id":1,"op":"hello","args":{"version":1}}` + "\n"

func TestMistakesThatLeaveTheSessionOpen(t *testing.T) {
	c := dialRaw(t, serving(t, Options{}))
	c.says(t, `{"id":3,"op":"counters"}`+"\n")
	if a := c.hears(t); a.ID != 3 || a.Error == nil || a.Error.Code != service.CodeRequest {
		t.Errorf("before hello: %+v", a)
	}
	c.says(t, `{"id":4,"op":"hello","args":{"version":99}}`+"\n")
	if a := c.hears(t); a.Error == nil || a.Error.Code != service.CodeVersion {
		t.Errorf("version 99: %+v", a)
	}
	c.says(t, strings.Replace(helloLine, "\n", "\r\n", 1))
	if a := c.hears(t); a.Error != nil {
		t.Fatalf("hello: %+v", a.Error)
	}
	for _, m := range []struct {
		text string
		code service.Code
	}{
		{`{"id":5,"op":"frobnicate"}`, service.CodeOp},
		{`{"id":5,"op":"listen","args":{"colour":"red"}}`, service.CodeRequest},
		{`{"id":5,"op":"listen","args":[]}`, service.CodeRequest},
		{`{"id":5,"op":"listen","args":{"crc":"never"}}`, service.CodeRequest},
		{`{"id":5,"op":"listen","args":{"ird":-1}}`, service.CodeRequest},
		{`{"id":5,"op":"listen","args":{"answer":"drop"}}`, service.CodeRequest},
		{`{"id":5,"op":"listen","args":{"rtr":["smoke"]}}`, service.CodeRequest},
		{`{"id":5,"op":"event","args":{"timeout_ms":-1}}`, service.CodeRequest},
		{`{"id":5,"op":"event","args":{"timeout_ms":60001}}`, service.CodeRequest},
		{`{"id":5,"op":"event","args":{"timeout_ms":1}}`, service.CodeTimeout},
		{`{"id":5,"op":"state","args":{"qp":77}}`, service.CodeUnknown},
		{`{"id":5,"op":"register","args":{"length":0}}`, service.CodeLimit},
		{`{"id":5,"op":"register","args":{"length":8,"access":["everything"]}}`, service.CodeRequest},
		{`{"id":5,"op":"register","args":{"length":8,"access":["remote_write"]}}`, service.CodeRefused},
		{`{"id":5,"op":"register","args":{"length":8,"base":"0xzz"}}`, service.CodeRequest},
		{`{"id":5,"op":"register","args":{"length":8,"base":99999999999999999}}`, service.CodeRequest},
		{`{"id":5,"op":"memory_write","args":{"mr":1,"data":"0"}}`, service.CodeRequest},
		{`{"id":5,"op":"window","args":{"type":3}}`, service.CodeRequest},
		{`{"id":5,"op":"close_pd","args":{"pd":0}}`, service.CodeState},
		{`{"id":5,"op":"qp","args":{"send_depth":100000}}`, service.CodeRefused},
	} {
		c.says(t, m.text+"\n")
		if a := c.hears(t); a.ID != 5 || a.Error == nil || a.Error.Code != m.code || a.Error.Message == "" {
			t.Errorf("%s: %+v; want %s", m.text, a.Error, m.code)
		}
	}
}

func TestMistakesThatEndTheSession(t *testing.T) {
	address := serving(t, Options{})
	for name, text := range map[string]string{
		"no JSON":             "hello\n",
		"no ID":               `{"op":"hello"}` + "\n",
		"something unknown":   `{"id":1,"op":"hello","please":true}` + "\n",
		"two on a line":       `{"id":1,"op":"pd"}{"id":2,"op":"pd"}` + "\n",
		"too long":            strings.Repeat("x", service.MaxLine+8<<10),
		"one after the other": helloLine + `{"id":2,"op":"event","args":{"timeout_ms":60000}}` + "\n" + `{"id":3,"op":"counters"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, address)
			c.says(t, text)
			a := c.hears(t)
			if a.ID == 1 && a.Error == nil { // hello
				a = c.hears(t)
			}
			if a.ID != 0 || a.Error == nil || a.Error.Code != service.CodeRequest {
				t.Errorf("answer %+v", a)
			}
			c.isOver(t)
		})
	}
}

func TestALineOfTheGreatestLengthIsRead(t *testing.T) {
	c := dialRaw(t, serving(t, Options{}))
	text := helloLine[:len(helloLine)-1]
	c.says(t, text+strings.Repeat(" ", service.MaxLine-len(text))+"\n")
	if a := c.hears(t); a.ID != 1 || a.Error != nil {
		t.Errorf("answer %+v", a)
	}
}

func TestSilentSessionIsEnded(t *testing.T) {
	c := dialRaw(t, serving(t, Options{IdleTimeout: time.Millisecond}))
	if a := c.hears(t); a.ID != 0 || a.Error == nil || a.Error.Code != service.CodeTimeout {
		t.Errorf("answer %+v", a)
	}
	c.isOver(t)
}

func TestTooManySessionsAreTurnedAway(t *testing.T) {
	address := serving(t, Options{MaxSessions: 1})
	c := dial(t, address)
	_, err := service.Dial(t.Context(), address)
	if service.CodeOf(err) != service.CodeLimit {
		t.Errorf("error %v", err)
	}
	check(t, c.Close())
	for { // until the server has noticed
		second, err := service.Dial(t.Context(), address)
		if err == nil {
			second.Close()
			return
		}
		if service.CodeOf(err) != service.CodeLimit {
			t.Fatal(err)
		}
	}
}

// Connections that say nothing take no place from those who speak.
func TestSilentConnectionsMakeRoomForSessions(t *testing.T) {
	const places = 3
	address := serving(t, Options{MaxSessions: places})
	speaking := dialRaw(t, address)
	speaking.says(t, helloLine)
	if a := speaking.hears(t); a.Error != nil {
		t.Fatal(a.Error)
	}
	for i := range 5 {
		for range 4 * places {
			_ = dialRaw(t, address)
		}
		c := dialRaw(t, address)
		c.says(t, helloLine)
		if a := c.hears(t); a.Error != nil {
			t.Fatalf("client %d: %v", i, a.Error)
		}
		_ = c.Close()
	}
	speaking.says(t, `{"id":2,"op":"hello","args":{"version":1}}`+"\n")
	if a := speaking.hears(t); a.Error != nil || a.ID != 2 {
		t.Errorf("who spoke first hears %+v", a)
	}
}

func TestEverythingGoesWithTheControlConnection(t *testing.T) {
	leakcheck.Check(t)
	address := serving(t, Options{})
	before := descriptors(t)
	a, b := end{Client: dial(t, address)}, end{Client: dial(t, address)}
	joined(t, &a, &b, service.ListenArgs{Recvs: service.Recvs(100)}, service.ConnectArgs{Recvs: service.Recvs(100)})
	l := must(b.Listen(t.Context(), service.ListenArgs{Answer: service.AnswerHold}))(t)
	must(a.Connect(t.Context(), service.ConnectArgs{Address: l.Address}))(t)
	must(b.Accepted(t.Context(), l.Listener, patience))(t)
	must(b.Register(t.Context(), service.RegisterArgs{Length: 1 << 20, Access: []string{service.LocalWrite, service.RemoteWrite}}))(t)
	must(b.CreateSRQ(t.Context(), service.SRQArgs{Recvs: service.Recvs(10)}))(t)
	must(b.Window(t.Context(), service.WindowArgs{Type: 2}))(t)
	must(b.AllocPD(t.Context()))(t)
	waiting := make(chan error, 1)
	go func() { // the end of the connection ends what waits
		_, err := b.Completion(t.Context(), b.qp, service.RecvQueue, time.Minute)
		waiting <- err
	}()
	check(t, b.Close())
	if err := <-waiting; err == nil || service.CodeOf(err) != "" {
		t.Errorf("the call that waited: %v", err)
	}
	if e := must(a.Event(t.Context(), patience))(t); e.QP != a.qp {
		t.Errorf("event %+v", e)
	}
	a.becomes(t, service.StateError)
	check(t, a.Close())
	for deadline := time.Now().Add(patience); descriptors(t) > before || mapped(t); {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors are open; there were %d; memory is mapped: %v", descriptors(t), before, mapped(t))
		}
	}
	if c, err := net.Dial("tcp", l.Address); err == nil {
		c.Close()
		t.Error("the listener still listens")
	}
}

// descriptors returns how many this process has open, or 0 where nobody tells.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := filepath.Glob("/proc/self/fd/*")
	check(t, err)
	return len(list)
}

// mapped reports whether memory of a session is mapped, where the system tells.
func mapped(t *testing.T) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if !errors.Is(err, os.ErrNotExist) {
		check(t, err)
	}
	return bytes.Contains(maps, []byte("memfd:urnic-conformance"))
}

func TestServeEndsItsSessions(t *testing.T) {
	leakcheck.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Options{}) }()
	c := dial(t, l.Addr().String())
	must(c.Listen(t.Context(), service.ListenArgs{}))(t)
	cancel()
	check(t, <-ended)
	if _, err := c.Counters(t.Context()); err == nil {
		t.Error("the session goes on")
	}
}

func TestContextOfACallEndsTheSession(t *testing.T) {
	c := dial(t, serving(t, Options{}))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no more patience")
	go func() { cancel(why) }()
	if _, err := c.Event(ctx, time.Minute); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	if _, err := c.Counters(t.Context()); !errors.Is(err, why) {
		t.Errorf("the next call: %v", err)
	}
}

func TestSessionsShareARecording(t *testing.T) {
	var file bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, Options{Device: rnic.Config{Record: &file}}) }()
	a, b := end{Client: dial(t, l.Addr().String())}, end{Client: dial(t, l.Addr().String())}
	joined(t, &a, &b, service.ListenArgs{}, service.ConnectArgs{})
	cancel()
	check(t, <-ended)
	head := []byte{0x0A, 0x0D, 0x0D, 0x0A} // of a section
	if n := bytes.Count(file.Bytes(), head); n != 1 {
		t.Errorf("the recording has %d sections", n)
	}
	// The request is in it twice: as sent, and as received.
	if n := bytes.Count(file.Bytes(), []byte("MPA ID Req Frame")); n != 2 {
		t.Errorf("the Request is recorded %d times", n)
	}
}
