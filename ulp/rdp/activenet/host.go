package activenet

import (
	"errors"
	"net/netip"
	"time"

	"urnic/ulp/rdp/machine"
)

// service is the RDP port of receivers.
const service = 1

// A host is one end of a flow.
type host struct {
	flow     *Flow
	m        *machine.Machine
	addr     netip.Addr
	conn     *machine.Conn
	listener *machine.Listener
	alarm    time.Duration // when the next Advance is arranged for; 0: not
}

func (f *Flow) newHost(id int, sends bool) (*host, error) {
	cfg := f.cfg.Machine
	last := byte(2)
	if sends {
		last = 1
	}
	cfg.Secret = []byte{byte(f.net.seed), byte(f.net.seed >> 8), byte(id), byte(id >> 8), last}
	m, err := machine.New(cfg)
	if err != nil {
		return nil, err
	}
	return &host{flow: f, m: m, addr: netip.AddrFrom4([4]byte{10, byte(id >> 8), byte(id), last})}, nil
}

func (h *host) listen() (err error) {
	p := h.flow.params()
	p.Congestion = nil
	h.listener, err = h.m.Listen(machine.ListenConfig{Port: service, Params: p})
	return err
}

// arrive takes a segment from the other host. The machine keeps nothing of it.
func (h *host) arrive(segment []byte, from *host) {
	h.m.Receive(h.flow.net.now, machine.Path{Local: h.addr, Remote: netip.AddrPortFrom(from.addr, port)}, segment)
	h.work()
}

// work does what programs and the owner of a machine do: read, write, send, set the alarm.
func (h *host) work() {
	for _, e := range h.m.Events() {
		if e.Kind == machine.StateChanged && e.Err != nil {
			h.flow.err = e.Err
		}
	}
	if h.listener != nil && h.conn == nil {
		h.conn = h.listener.Accept()
	}
	if h.conn != nil {
		h.read()
		if h == h.flow.sender {
			h.write()
		}
	}
	for {
		segment, _, ok := h.m.Pull(h.flow.net.now, h.flow.buf)
		if !ok {
			break
		}
		h.flow.transmitted(h, segment)
	}
	h.setAlarm()
}

func (h *host) read() {
	f := h.flow
	for {
		msg, err := h.conn.Receive()
		if err != nil {
			if !errors.Is(err, machine.ErrWouldBlock) && f.err == nil {
				f.err = err
			}
			return
		}
		f.Stats.Delivered++
		f.Stats.Bytes += len(msg.Data)
		h.m.Free(msg.Data)
	}
}

func (h *host) write() {
	f := h.flow
	f.fill()
	if f.left == 0 && f.Stats.Done == 0 && f.err == nil && h.conn.Status().Unacknowledged == 0 {
		f.Stats.Done = f.net.now
	}
}

// setAlarm arranges for Advance at the machine's deadline.
func (h *host) setAlarm() {
	at, ok := h.m.Deadline()
	if !ok || h.alarm != 0 && h.alarm <= at {
		return // the alarm that is set comes early enough, and looks again
	}
	at = max(at, h.flow.net.now+1)
	h.alarm = at
	h.flow.net.At(at, func() {
		if h.alarm == at {
			h.alarm = 0
		}
		h.m.Advance(h.flow.net.now)
		h.work()
	})
}
