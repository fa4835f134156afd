package rnic

import (
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic/internal/drive"
	"urnic/rnic/internal/life"
)

// bind gives a queue pair its stream and starts it: from Idle, in which beginStartup
// has kept it, to RTS.
func (q *QP) bind(conn LLPConn, held []amount) (*link, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	if err := q.join(); err != nil { // a completion queue that fails from now on finds the stream
		return nil, err
	}
	if q.link != nil { // a stream before this one was closed gracefully
		q.ended.Add(q.link.rdmap.Stats())
	}
	params := conn.Params()
	l := &link{
		qp: q, conn: conn, params: params, held: held,
		quiet: make(chan struct{}), done: make(chan struct{}),
	}
	cfg := rdmap.Config{
		Memory: &q.pd.dev.memory, Scope: q.scope(), IRD: int(params.IRD), ORD: int(params.ORD), Refused: &q.refused,
	}
	initiator := params.Role == mpa.Initiator
	if initiator {
		cfg.SendRTR = params.RTR
	} else {
		cfg.ExpectRTR = params.RTR
	}
	if trace := q.pd.dev.cfg.Trace; trace != nil {
		cfg.Trace = func(t rdmap.Trace) { trace(Trace{Device: q.pd.dev.cfg.Name, QPN: q.num, Trace: t}) }
	}
	l.rdmap = rdmap.NewStream(conn, l, cfg)
	conn.SetKeeper(l.keeps)
	if limit := q.policy.RNR(); limit > 0 {
		l.rnr = life.RNR{Limit: limit}
		l.posted = make(signal, 1)
	}
	var programs []*drive.Group // that can receive
	if conn.Polls() {
		programs = []*drive.Group{&q.recvCQ.programs, &q.sendCQ.programs}
	}
	q.link, q.starting = l, nil
	q.life.Connected(life.Params{
		Initiator: initiator, PeerToPeer: params.PeerToPeer, ReadRTR: params.RTR == mpa.RTRRead, ORD: int(params.ORD),
	})
	l.note()
	l.driver.Start(l, &q.pd.dev.wg, programs...)
	return l, nil
}
