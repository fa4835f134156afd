//go:build linux

package dropin

import (
	"errors"
	"time"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictimeline"
)

// recordDelay is how long package rnic may keep what it records: see rnic.Config.Record.
const recordDelay = 250 * time.Millisecond

// timelineNow returns the time, if a timeline is recorded.
func (e *Engine) timelineNow() (now time.Time) {
	if e.timeline != nil {
		now = time.Now()
	}
	return now
}

// noteSends notes the first n requests of the batch in the timeline, which were handed to package rnic at a
// time, as far as they were posted: those of the program, and one behind them that asks for an acknowledgment. The
// caller holds the batch's mu.
func (q *qp) noteSends(at time.Time, n int, all bool, err error) {
	if q.engine.timeline == nil {
		return
	}
	if err != nil {
		refused, is := errors.AsType[*rnic.WRError](err)
		if !is || all {
			return
		}
		n = min(refused.Index, n)
	}
	b := &q.send
	for i := range n {
		e := rnictimeline.SendEvent(at, q.num, &b.wrs[i])
		if b.acks != nil {
			if e.Hidden = i >= len(b.acks.requests); !e.Hidden {
				e.ID = b.acks.requests[i].ID
			}
		}
		if e.Op == door.OpSendImmediate {
			e.Messages = 2
		}
		q.engine.timeline.Note(e)
	}
}

// noteHidden notes a request that is not the program's.
func (q *qp) noteHidden(at time.Time, wr *rnic.SendWR) {
	if q.engine.timeline != nil {
		e := rnictimeline.SendEvent(at, q.num, wr)
		e.Hidden = true
		q.engine.timeline.Note(e)
	}
}

// notePolled notes completions that the program gets.
func (e *Engine) notePolled(wcs []WC) {
	if e.timeline == nil || len(wcs) == 0 {
		return
	}
	now := time.Now()
	for i := range wcs {
		w := &wcs[i]
		event := rnictimeline.Event{
			Kind: rnictimeline.Polled, Op: rnic.OpSend, QPN: w.QPN, ID: w.ID, Failed: w.Status != wcSuccess, Length: uint64(w.ByteLen), Messages: 1, Time: now,
		}
		switch {
		case w.Opcode == wcRecv && w.Flags&wcWithImm != 0: // Immediate Data, and the Send
			event.Op, event.Messages = rnic.OpRecv, 2
		case w.Opcode == wcRecv:
			event.Op = rnic.OpRecv
		case w.Opcode == wcRecvImm:
			event.Op = rnic.OpRecvImmediate
		}
		e.timeline.Note(event)
	}
}

// leaveTimeline waits until what was recorded is written, in a process that exits.
func (e *Engine) leaveTimeline() {
	if e.timeline != nil {
		time.Sleep(recordDelay)
		_ = e.timeline.Flush() // nobody could be told
	}
}
