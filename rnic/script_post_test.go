package rnic_test

import (
	"strconv"
	"strings"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/stag"
)

// nowhere is an STag that opens no memory.
const nowhere stag.STag = 0x00DEAD00

// theirIndex is that of the peer's first STag.
const theirIndex = 0x7E0000

// stagOf returns the STag that a script calls so: of a region or window of the queue pair's
// side, or of the peer's memory, whose names begin with "their". With ' behind it, it is
// what a fast registration or a bind with the next key makes of it.
func (l *life) stagOf(name string) stag.STag {
	if was, ok := strings.CutSuffix(name, "'"); ok {
		s := l.stagOf(was)
		return s.WithKey(s.Key() + 1)
	}
	if mr, ok := l.mrs[name]; ok {
		return mr.STag()
	}
	if mw, ok := l.mws[name]; ok {
		return mw.STag()
	}
	switch {
	case name == "nowhere":
		return nowhere
	case name == "0":
		return 0
	case !strings.HasPrefix(name, "their"):
		l.Fatalf("%s: no memory is called %q", l.at, name)
	}
	if _, ok := l.theirs[name]; !ok {
		l.theirs[name] = stag.Make(theirIndex+uint32(len(l.theirs)), 0)
	}
	return l.theirs[name]
}

// stagName is stagOf the other way round.
func (l *life) stagName(s stag.STag) string {
	for name, mr := range l.mrs {
		if mr.STag().Index() == s.Index() {
			return name
		}
	}
	for name, mw := range l.mws {
		if mw.STag().Index() == s.Index() {
			return name
		}
	}
	for name, their := range l.theirs {
		if their == s {
			return name
		}
	}
	switch s {
	case nowhere:
		return "nowhere"
	case 0:
		return "0"
	}
	l.Errorf("%s: nobody has told of STag %v", l.at, s)
	return "?"
}

// A place is memory by STag and offset, "mem+100".
type place struct {
	stag stag.STag
	to   uint64
}

func (l *life) place(s string) place {
	name, off, _ := strings.Cut(s, "+")
	to := uint64(0)
	if off != "" {
		var err error
		if to, err = strconv.ParseUint(off, 0, 64); err != nil {
			l.Fatalf("%s: %s: %v", l.at, s, err)
		}
	}
	return place{l.stagOf(name), to}
}

// sgl returns what a command names, "sink+0" of all of its length or "sink+0:4,sink+8:4".
func (c *command) sgl(name, otherwise string) (sgl []rnic.SGE) {
	length := c.number("len", 0)
	for part := range strings.SplitSeq(c.value(name, otherwise), ",") {
		at, n, ok := strings.Cut(part, ":")
		k := length
		if ok {
			k, _ = strconv.Atoi(n)
		}
		p := c.l.place(at)
		if k > 0 || c.has(name) {
			sgl = append(sgl, rnic.SGE{Addr: p.to, Length: uint32(k), LKey: p.stag})
		}
	}
	return sgl
}

func (c *command) remote(name string) rnic.Remote {
	p := c.l.place(c.value(name, "theirs+0"))
	return rnic.Remote{STag: p.stag, TO: p.to}
}

var rights = map[string]rnic.Access{
	"local-write": rnic.LocalWrite, "remote-read": rnic.RemoteRead, "remote-write": rnic.RemoteWrite | rnic.LocalWrite,
	"remote-atomic": rnic.RemoteAtomic | rnic.LocalWrite, "bind": rnic.BindWindow, "remote-invalidate": rnic.RemoteInvalidate,
}

func (c *command) access() (a rnic.Access) {
	for name := range strings.SplitSeq(c.value("access", "local-write"), ",") {
		right, ok := rights[name]
		if !ok {
			c.l.Fatalf("%s: no right %q", c.l.at, name)
		}
		a |= right
	}
	return a
}

// register makes a region, zero-based unless it says another base; with alloc, one that a fast registration is to make valid.
func (l *life) register(c *command) {
	name, length := c.word(), c.number("len", 100)
	if !c.flag("alloc") {
		base := uint64(c.number("base", 0))
		l.addRegion(name, rnic.Memory{Slice: make([]byte, length), ZeroBased: base == 0, Base: base}, c.access())
		return
	}
	mr, err := l.s.PD.AllocMR(uint64(length))
	if err != nil {
		l.Fatal(err)
	}
	l.mrs[name] = mr
}

func (l *life) deregister(c *command) {
	if err := l.mrs[c.word()].Close(); err != nil {
		l.say("deregister: %s", l.words(err))
	}
}

// window makes a window of type 2.
func (l *life) window(c *command) {
	mw, err := l.s.PD.AllocMW(rnic.Type2)
	if err != nil {
		l.Fatal(err)
	}
	l.mws[c.word()] = mw
}

var sendOps = map[string]rnic.Opcode{
	"send": rnic.OpSend, "send-invalidate": rnic.OpSendInvalidate, "send-immediate": door.OpSendImmediate,
	"write": rnic.OpWrite, "write-immediate": rnic.OpWriteImmediate, "read": rnic.OpRead, "read-invalidate": rnic.OpReadInvalidate,
	"immediate": rnic.OpImmediate, "fetch-add": rnic.OpFetchAdd, "cmp-swap": rnic.OpCmpSwap,
	"invalidate": rnic.OpLocalInvalidate, "fast-register": rnic.OpFastRegister, "bind": rnic.OpBindWindow,
}

var sendFlags = map[string]rnic.Flags{
	"inline": rnic.FlagInline, "unsignaled": rnic.FlagUnsignaled, "solicited": rnic.FlagSolicited,
	"read-fence": rnic.FlagReadFence, "local-fence": rnic.FlagLocalFence,
}

// post posts requests, several in one call with semicolons between them.
func (l *life) post(rest string) {
	var sends []rnic.SendWR
	var recvs []rnic.RecvWR
	all, shared := false, false
	for item := range strings.SplitSeq(rest, ";") {
		c := l.parse(item)
		all = c.flag("all-or-none") || all
		switch op := c.word(); op {
		case "recv", "shared-recv":
			shared = op == "shared-recv"
			recvs = append(recvs, rnic.RecvWR{ID: uint64(c.number("id", 0)), SGL: c.sgl("into", "rx+0")})
		default:
			sends = append(sends, l.sendWR(op, c))
		}
		c.done()
	}
	var err error
	switch q := l.s.QP; {
	case shared:
		err = l.srq.PostRecv(recvs...)
	case recvs != nil:
		l.see("post a receive")
		err = q.PostRecv(recvs...)
	case all:
		l.see("post a request")
		err = q.PostSendAll(sends...)
	default:
		l.see("post a request")
		err = q.PostSend(sends...)
	}
	if err != nil {
		l.say("post: %s", l.words(err))
	}
}

func (l *life) sendWR(op string, c *command) rnic.SendWR {
	wr := rnic.SendWR{ID: uint64(c.number("id", 0)), Op: sendOps[op]}
	if wr.Op == 0 {
		l.Fatalf("%s: no operation %q", l.at, op)
	}
	for name, f := range sendFlags {
		if c.flag(name) {
			wr.Flags |= f
		}
	}
	copy(wr.Immediate[:], c.value("immediate", "now"))
	switch wr.Op {
	case rnic.OpSend, rnic.OpSendInvalidate, door.OpSendImmediate, rnic.OpWrite, rnic.OpWriteImmediate:
		if wr.Flags&rnic.FlagInline != 0 {
			wr.Inline = make([]byte, c.number("len", 0))
		} else {
			wr.SGL = c.sgl("from", "src+0")
		}
		if wr.Op == rnic.OpWrite || wr.Op == rnic.OpWriteImmediate {
			wr.Remote = c.remote("to")
		}
		if wr.Op == rnic.OpSendInvalidate {
			wr.Invalidate = l.stagOf(c.value("stag", "theirs"))
		}
	case rnic.OpRead, rnic.OpReadInvalidate:
		wr.SGL, wr.Remote = c.sgl("into", "sink+0"), c.remote("from")
	case rnic.OpFetchAdd, rnic.OpCmpSwap:
		wr.Remote = c.remote("on")
		wr.Atomic = rnic.Atomic{Add: uint64(c.number("add", 0)), Compare: uint64(c.number("compare", 0)), Swap: uint64(c.number("swap", 0))}
	case rnic.OpLocalInvalidate:
		wr.Invalidate = l.stagOf(c.value("stag", ""))
	case rnic.OpFastRegister:
		mr := l.mrs[c.value("region", "")]
		wr.Register = rnic.FastRegister{
			MR: mr, Memory: rnic.Memory{Slice: make([]byte, c.number("len", 100)), ZeroBased: true},
			Access: c.access(), Key: mr.STag().Key() + uint8(c.number("key", 1)),
		}
	case rnic.OpBindWindow:
		mw := l.mws[c.value("window", "")]
		wr.Bind = rnic.Bind{MW: mw, Length: uint64(c.number("len", 100)), Access: c.access() &^ rnic.LocalWrite, Key: mw.STag().Key() + uint8(c.number("key", 1))}
		wr.Bind.MR = l.mrs[c.value("region", "")]
		wr.Bind.Addr = wr.Bind.MR.Base()
	default: // Immediate Data has nothing more
	}
	return wr
}
