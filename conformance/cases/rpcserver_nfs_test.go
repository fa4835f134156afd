package cases

import (
	"encoding/binary"

	"urnic/conformance/rpc"
	"urnic/stag"
)

func stagOf(v uint32) stag.STag { return stag.STag(v) }

// An arguments is the arguments of a call, item by item.
type arguments struct {
	rest  []byte
	short bool
}

func (a *arguments) word() uint32 {
	if len(a.rest) < 4 {
		a.short = true
		return 0
	}
	v := binary.BigEndian.Uint32(a.rest)
	a.rest = a.rest[4:]
	return v
}

func (a *arguments) opaque() []byte {
	n := int(a.word())
	if whole := n + rpc.Roundup(n); n < 0 || whole > len(a.rest) {
		a.short = true
		return nil
	}
	b := a.rest[:n]
	a.rest = a.rest[n+rpc.Roundup(n):]
	return b
}

func reply(of ...uint32) []byte {
	var b []byte
	for _, w := range of {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// nfs carries out a call, and returns its results up to the data of READ, and those. A
// nil result stands for GARBAGE_ARGS.
func (c *scripted) nfs(call rpc.Call) (results, data []byte, hasData bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &arguments{rest: call.Args}
	const inval = 22
	switch call.Procedure {
	case rpc.Null:
		return []byte{}, nil, false
	case rpc.GetAttr:
		a.opaque()
		results = append(reply(rpc.OK), make([]byte, 84)...)
	case rpc.Lookup, rpc.Remove, rpc.Create:
		a.opaque()
		name := string(a.opaque())
		if a.short {
			break
		}
		_, there := c.files[name]
		switch {
		case call.Procedure == rpc.Create:
			c.files[name] = nil
			return append(rpc.Opaque(reply(rpc.OK, 1), []byte(name)), reply(0, 0, 0)...), nil, false
		case !there:
			return reply(rpc.NoEnt, 0, 0), nil, false
		case call.Procedure == rpc.Remove:
			delete(c.files, name)
			return reply(rpc.OK, 0, 0), nil, false
		}
		return append(rpc.Opaque(reply(rpc.OK), []byte(name)), reply(0, 0)...), nil, false
	case rpc.Write:
		name := string(a.opaque())
		a.word()
		off := int(a.word())
		a.word()
		a.word()
		b := a.opaque()
		if a.short {
			break
		}
		f := c.files[name]
		for len(f) < off+len(b) {
			f = append(f, 0)
		}
		copy(f[off:], b)
		c.files[name] = f
		return append(reply(rpc.OK, 0, 0, uint32(len(b)), 2), make([]byte, 8)...), nil, false
	case rpc.Read:
		name := a.opaque()
		a.word()
		off, n := int(a.word()), int(a.word())
		if a.short {
			break
		}
		f, ok := c.files[string(name)]
		if !ok {
			return reply(inval, 0), nil, false
		}
		f = f[min(off, len(f)):]
		f = f[:min(n, len(f))]
		return reply(rpc.OK, 0, uint32(len(f)), 1, uint32(len(f))), f, true
	}
	if a.short {
		return nil, nil, false
	}
	return results, nil, false
}
