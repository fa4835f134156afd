//go:build linux

package dropin

import (
	"sync"
	"time"

	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/datagram/carrier"
	"urnic/internal/dropin/sysfs"
	"urnic/internal/dropin/sysfsdir"
	"urnic/rdmap"
)

// countEvery is how often the counters in URNIC_SYSFS are brought up to date.
const countEvery = time.Second

// A counted is what a port, or a queue pair, has counted. Data are in bytes.
type counted [sysfs.Counters]uint64

func (c *counted) add(o *counted) {
	for i := range c {
		c[i] += o[i]
	}
}

type portKey struct{ device, port uint32 }

// counting adds what the process does to the files of its ports, if it has a directory of sysfs. The files are those of
// all processes that have the directory.
type counting struct {
	begin sync.Once

	mu    sync.Mutex
	ended map[portKey]*counted // of queue pairs that are gone
	told  map[portKey]*counted // what is in the files, in their units
}

// beginCounting begins to count, with the first queue pair.
func (e *Engine) beginCounting() {
	if e.settings.sysfs == "" {
		return
	}
	e.counting.begin.Do(func() {
		e.wg.Go(func() {
			t := time.NewTicker(countEvery)
			defer t.Stop()
			for {
				select {
				case <-e.ctx.Done():
					return
				case <-t.C:
					e.tellCounters()
				}
			}
		})
	})
}

// port returns the port of a queue pair.
func (q *qp) port() portKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	return portKey{q.ctx.device, max(q.attr.Port, 1)}
}

// count returns what a queue pair has counted.
func (q *qp) count() (c counted) {
	if q.datagram != nil {
		return q.datagram.counted()
	}
	s := q.verbs.Counters()
	for op := range s.Sent {
		c[sysfs.XmitData] += s.Sent[op].Octets
		c[sysfs.XmitPackets] += s.Sent[op].Messages
		c[sysfs.RcvData] += s.Received[op].Octets
		c[sysfs.RcvPackets] += s.Received[op].Messages
	}
	c[sysfs.UnicastXmitPackets], c[sysfs.UnicastRcvPackets] = c[sysfs.XmitPackets], c[sysfs.RcvPackets]
	c[sysfs.WriteRequests] = s.Received[rdmap.OpWrite].Messages
	c[sysfs.ReadRequests] = s.Received[rdmap.OpReadRequest].Messages
	c[sysfs.AtomicRequests] = s.Received[rdmap.OpAtomicRequest].Messages
	c[sysfs.RcvErrors] = s.Sent[rdmap.OpTerminate].Messages
	return c
}

func (d *datagramQP) counted() (c counted) {
	d.sendMu.Lock()
	c = d.sent
	d.sendMu.Unlock()
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	c.add(&d.received)
	for r, n := range d.queue.Dropped() {
		if datagram.Reason(r) == datagram.NoReceive {
			c[sysfs.OutOfBuffer] += n
		} else {
			c[sysfs.RcvErrors] += n
		}
	}
	return c
}

// countSent counts a message that has gone. The caller holds sendMu.
func (d *datagramQP) countSent(w *pendingSend) {
	d.sent[sysfs.XmitData] += uint64(w.header.Length)
	d.sent[sysfs.XmitPackets]++
	if w.to.Addr().IsMulticast() {
		d.sent[sysfs.MulticastXmitPackets]++
	} else {
		d.sent[sysfs.UnicastXmitPackets]++
	}
}

// countReceived counts a message that has come. The caller holds recvMu.
func (d *datagramQP) countReceived(a *carrier.Arrival, multicast bool) {
	d.received[sysfs.RcvData] += uint64(a.Length)
	d.received[sysfs.RcvPackets]++
	if multicast {
		d.received[sysfs.MulticastRcvPackets]++
	} else {
		d.received[sysfs.UnicastRcvPackets]++
	}
	if a.Op == datagram.UCWrite {
		d.received[sysfs.WriteRequests]++
	}
}

// countEnded keeps what a queue pair has counted that is destroyed.
func (e *Engine) countEnded(q *qp) {
	if e.settings.sysfs == "" {
		return
	}
	key, c := q.port(), q.count()
	e.counting.mu.Lock()
	defer e.counting.mu.Unlock()
	if e.counting.ended == nil {
		e.counting.ended = make(map[portKey]*counted)
	}
	sum := e.counting.ended[key]
	if sum == nil {
		sum = new(counted)
		e.counting.ended[key] = sum
	}
	sum.add(&c)
}

// tellCounters brings the files up to date. What can't be told now is told the next time.
func (e *Engine) tellCounters() {
	if e.settings.sysfs == "" {
		return
	}
	now := make(map[portKey]*counted)
	e.qps.each(func(_ Handle, q *qp) {
		key, c := q.port(), q.count()
		if now[key] == nil {
			now[key] = new(counted)
		}
		now[key].add(&c)
	})
	c := &e.counting
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, sum := range c.ended {
		if now[key] == nil {
			now[key] = new(counted)
		}
		now[key].add(sum)
	}
	for key, sum := range now {
		if c.told == nil {
			c.told = make(map[portKey]*counted)
		}
		if c.told[key] == nil {
			c.told[key] = new(counted)
		}
		e.tellPort(key, sum, c.told[key])
	}
}

// tellPort adds to the files of a port what is new.
func (e *Engine) tellPort(key portKey, now, told *counted) {
	name := e.devices[key.device].name
	for i, n := range now {
		file := sysfs.Counter(i)
		if file == sysfs.XmitData || file == sysfs.RcvData {
			n /= 4
		}
		if n <= told[i] { // less: a queue pair is being destroyed at this moment
			continue
		}
		if err := sysfsdir.Add(e.settings.sysfs, sysfs.CounterFile(name, int(key.port), file), n-told[i]); err != nil {
			e.log.printf(logDebug, "counters: %v", err)
			continue
		}
		told[i] = n
	}
}
