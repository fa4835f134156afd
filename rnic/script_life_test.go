package rnic_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// A life is that of one queue pair of a device, whose peer the script plays.
type life struct {
	*world
	file, at string // of the script
	seen     sightings

	s       *rnictest.Side
	srq     *rnic.SRQ
	channel *rnic.CompletionChannel
	mrs     map[string]*rnic.MR
	mws     map[string]*rnic.MW
	theirs  map[string]stag.STag // memory of the peer
	ready   chan string          // calls that have returned
	calls   int                  // that have not
	byHand  bool                 // completions are polled when the script says so
	asked   bool                 // and the channel is asked
	helper  *rnic.QP             // that makes the completion queue overflow

	*scriptPeer

	state    rnic.State // as it was told last
	draining bool       // Disconnect was called
	starting bool       // Connect or Accept has not returned
	began    *standing  // when the command began, for the table
	out      strings.Builder
}

// run carries out a command, lets all come to rest, and returns what has come of it.
func (l *life) run(line string) string {
	l.out.Reset()
	verb, rest, _ := strings.Cut(line, " ")
	do := l.verb(verb)
	if do == nil {
		l.Fatalf("%s: no command %q", l.at, verb)
	}
	if l.s == nil && verb != "qp" {
		l.Fatalf("%s: a script begins with qp", l.at)
	}
	l.began = l.stands()
	do(l, rest)
	l.settle()
	return l.out.String()
}

// say adds a line to what has come of the command.
func (l *life) say(format string, args ...any) { fmt.Fprintf(&l.out, format+"\n", args...) }

// one makes a command of a function that takes one.
func one(f func(l *life, c *command)) func(*life, string) {
	return func(l *life, rest string) {
		c := l.parse(rest)
		f(l, c)
		c.done()
	}
}

// verb returns what a command does.
func (l *life) verb(name string) func(*life, string) {
	return map[string]func(*life, string){
		"qp":         one((*life).open),
		"connected":  one((*life).connected),
		"connect":    one((*life).connect),
		"accept":     one((*life).accepts),
		"reject":     one((*life).rejects),
		"post":       (*life).post,
		"register":   one((*life).register),
		"deregister": one((*life).deregister),
		"window":     one((*life).window),
		"poll":       one(func(l *life, _ *command) { l.collect() }),
		"arm":        one((*life).arm),
		"ask": one(func(l *life, _ *command) {
			for _, s := range l.notified() {
				l.say("%s", s)
			}
		}),
		"refuse":     one(func(l *life, c *command) { door.RefuseRemote(l.s.QP, c.access()&^rnic.LocalWrite) }),
		"forget":     one(func(l *life, _ *command) { door.Forget(l.s.QP) }),
		"overflow":   one((*life).overflow),
		"wait":       one((*life).sleep),
		"hold":       one(func(l *life, _ *command) { l.held = true }),
		"release":    one(func(l *life, _ *command) { l.held = false }),
		"disconnect": one(untilOver("disconnect", (*rnic.QP).Disconnect)),
		"terminate":  one(untilOver("terminate", (*rnic.QP).Terminate)),
		"abort":      one(atOnce("abort", func(q *rnic.QP) error { q.Abort(); return nil })),
		"close":      one(atOnce("close", (*rnic.QP).Close)),
		"reset":      one(atOnce("reset", (*rnic.QP).Reset)),
		"stop":       one(atOnce("stop", door.StopSending)),
		"resume":     one(atOnce("resume", door.ResumeSending)),
		"peer":       (*life).peerDoes,
	}[name]
}

// atOnce makes a command of a method that returns soon.
func atOnce(name string, f func(*rnic.QP) error) func(*life, *command) {
	return func(l *life, _ *command) {
		l.see(name)
		if err := f(l.s.QP); err != nil {
			l.say("%s: %s", name, l.words(err))
		}
	}
}

// untilOver makes a command of a method that may wait for the peer: it is told when it
// returns.
func untilOver(name string, f func(*rnic.QP, context.Context) error) func(*life, *command) {
	return func(l *life, c *command) {
		l.see(name)
		l.call(name, c, func(ctx context.Context) error { return f(l.s.QP, ctx) })
		if name == "disconnect" {
			l.draining = true
		}
	}
}

// call calls a method in a goroutine. Its context ends as the command says.
func (l *life) call(name string, c *command, f func(ctx context.Context) error) {
	ctx, cancel := context.Background(), func() {}
	if v := c.value("timeout", ""); v != "" {
		ctx, cancel = context.WithTimeout(ctx, l.duration(v))
	}
	l.calls++
	ready, words := l.ready, l.words
	go func() {
		defer cancel()
		ready <- name + ": " + words(f(ctx))
	}()
}

func (l *life) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		l.Fatalf("%s: %v", l.at, err)
	}
	return d
}

// policies sets the attributes of which a program of the verbs needs none. It is the one
// place that names them.
func policies(c *command, cfg *rnic.Config, qp *rnic.QPAttr, cq *rnic.CQAttr) {
	if d := c.value("recv-wait", ""); d != "" {
		qp.RecvWait = c.l.duration(d)
	}
	qp.SplitReads = c.flag("split-reads")
	var p policy.Lenient
	for name, d := range departures {
		if c.flag(name) {
			p.Departures |= d
		}
	}
	door.SetPolicyOfQP(qp, p)
	door.SetPolicyOfCQ(cq, p)
	p.Departures &= policy.CheckAtTurn | policy.TakeLate // of an SRQ
	door.SetPolicy(cfg, p)
}

// departures are the names of departures from the strict rules.
var departures = map[string]policy.Departure{
	"check-at-turn": policy.CheckAtTurn, "take-late": policy.TakeLate,
	"hold-sends": policy.HoldSends, "hold-receives": policy.HoldReceives, "pair-immediate": policy.PairImmediate,
	"fire-queued": policy.FireForQueued, "tell-each": policy.NotifyEach,
}

// open begins another life, with a device of its own.
func (l *life) open(c *command) {
	l.end()
	var cfg rnic.Config
	var attr rnic.QPAttr
	var cqAttr rnic.CQAttr
	policies(c, &cfg, &attr, &cqAttr)
	attr.MaxSendWR, attr.MaxRecvWR = c.number("sq", 0), c.number("rq", 0)
	cfg.MPA.MULPDU = c.number("mulpdu", 0)
	cfg.CloseTimeout = l.duration(c.value("close-timeout", "5s"))
	buffer := c.number("buffer", 0)
	l.Options = func(int) simnet.Options { return simnet.Options{Buffer: buffer} }
	cfg.Network = &l.Network
	d, err := rnic.Open(cfg)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = d.Close() }) // if the script fails; end has looked at it
	p, err := d.AllocPD()
	if err != nil {
		l.Fatal(err)
	}
	if l.channel, err = d.CreateCompletionChannel(); err != nil {
		l.Fatal(err)
	}
	cqAttr.Channel, cqAttr.Entries = l.channel, c.number("cq", 256)
	if attr.SendCQ, err = d.CreateCQ(cqAttr); err != nil {
		l.Fatal(err)
	}
	if attr.RecvCQ = attr.SendCQ; !c.flag("one-cq") {
		if attr.RecvCQ, err = d.CreateCQ(cqAttr); err != nil {
			l.Fatal(err)
		}
	}
	l.srq = nil
	if c.flag("srq") {
		if l.srq, err = p.CreateSRQ(rnic.SRQAttr{PerQP: c.number("share", 0), Limit: c.number("limit", 0)}); err != nil {
			l.Fatal(err)
		}
		attr.SRQ = l.srq
	}
	l.byHand, l.asked = c.flag("by-hand"), c.flag("channel-by-hand")
	l.s = newQP(l, d, p, attr)
	l.mrs, l.mws, l.theirs = map[string]*rnic.MR{}, map[string]*rnic.MW{}, map[string]stag.STag{}
	for name, access := range map[string]rnic.Access{
		"src": 0, "rx": rnic.LocalWrite, "sink": rnic.LocalWrite,
		"mem": allRights | rnic.RemoteInvalidate,
	} {
		l.addRegion(name, rnic.Memory{Slice: make([]byte, 1<<20), ZeroBased: true}, access)
	}
	l.ready = make(chan string, 100)
	l.helper, l.scriptPeer = nil, nil
	l.state, l.draining, l.starting, l.began = rnic.Idle, false, false, nil
}

func (l *life) addRegion(name string, mem rnic.Memory, access rnic.Access) {
	mr, err := l.s.PD.RegisterMemory(mem, access, nil)
	if err != nil {
		l.Fatal(err)
	}
	l.mrs[name] = mr
}

// end ends the life that there is. All that was held must be given back.
func (l *life) end() {
	if l.s == nil {
		return
	}
	if l.scriptPeer != nil && l.peer != nil {
		_ = l.conn.Close()
	}
	if err := l.s.Device.Close(); err != nil {
		l.Errorf("%s: closing the device: %v", l.at, err)
	}
	synctest.Wait()
	wantHeld(l, l.s.Device, pd.Limits{})
	if l.calls -= len(l.ready); l.calls != 0 {
		l.Errorf("%s: %d calls have not returned though the device is closed", l.at, l.calls)
	}
	l.s, l.calls = nil, 0
}

// restTime is longer than a connection is without a receiver once its program polls no more.
const restTime = 30 * time.Millisecond

// settle lets all come to rest, and says what has happened.
func (l *life) settle() {
	var wire, completions, notified, events []string
	for again := true; again; {
		again = false
		for range 2 {
			for l.step(&wire, &completions, &notified, &events) {
				again = true
			}
			time.Sleep(restTime)
		}
	}
	var results []string
	for n := len(l.ready); n > 0; n-- {
		l.calls--
		results = append(results, <-l.ready)
	}
	slices.Sort(results) // several return at once
	for _, r := range results {
		if (strings.HasPrefix(r, "connect:") || strings.HasPrefix(r, "accept:")) && !strings.HasSuffix(r, "not idle") {
			l.starting = false
		}
		l.say("%s", r)
	}
	for _, lines := range [][]string{wire, completions, notified, events} {
		for _, s := range lines {
			l.say("%s", s)
		}
	}
	if state := l.s.QP.State(); state != l.state {
		why := ""
		if err := l.s.QP.Err(); err != nil {
			why = ": " + l.words(err)
		}
		l.say("state: %v -> %v%s", l.state, state, why)
		l.state = state
	}
	if l.state != rnic.RTS {
		l.draining = false
	}
}

// step is one round of settle. It reports whether there was anything.
func (l *life) step(wire, completions, notified, events *[]string) (some bool) {
	add := func(to *[]string, lines []string) {
		some = some || len(lines) > 0
		*to = append(*to, lines...)
	}
	synctest.Wait()
	if l.scriptPeer != nil {
		add(wire, l.arrived())
	}
	if !l.byHand {
		add(completions, l.completions())
	}
	if !l.asked {
		add(notified, l.notified())
	}
	add(events, l.events())
	return some
}

// notified asks the channel until it tells nothing more.
func (l *life) notified() (lines []string) {
	for l.channel.Poll() != nil {
		lines = append(lines, "notify: the completion queue has fired")
	}
	return lines
}

// collect polls both completion queues.
func (l *life) collect() {
	for _, c := range l.completions() {
		l.say("%s", c)
	}
}

// completions returns those that there are, of sends first.
func (l *life) completions() (lines []string) {
	queues := []*rnic.CQ{l.s.SendCQ, l.s.RecvCQ}
	for _, cq := range slices.Compact(queues) {
		var wcs [16]rnic.WC
		for {
			n := cq.Poll(wcs[:])
			for i := range wcs[:n] {
				if l.helper == nil || wcs[i].QPN != l.helper.Num() {
					lines = append(lines, l.completion(&wcs[i]))
				}
			}
			if n < len(wcs) {
				break
			}
		}
	}
	return lines
}

// events returns the asynchronous events, those of queues before those of the queue pair:
// who finds that a queue has overflowed tells both at once.
func (l *life) events() (lines []string) {
	var ofQP []string
	for {
		e, ok := l.s.Device.PollEvent()
		if !ok {
			return append(lines, ofQP...)
		}
		s := "event: " + e.Type.String()
		if e.Terminate != nil {
			s += ": " + e.Terminate.Code.String()
		}
		switch {
		case l.helper != nil && e.QP == l.helper:
		case e.QP != nil && e.Type != rnic.EventSRQShare:
			ofQP = append(ofQP, s)
			l.seeEvent(e.Type)
		default:
			lines = append(lines, s)
			l.seeEvent(e.Type)
		}
	}
}

// connParam returns what a command says of a connection.
func (l *life) connParam(c *command) rnic.ConnParam {
	p := rnic.ConnParam{IRD: c.number("ird", 0), ORD: c.number("ord", 0)}
	if c.has("p2p") {
		p.MPA = &mpa.Config{PeerToPeer: true, RTR: l.rtr(c.value("p2p", ""))}
	}
	return p
}

var rtrNames = map[string]mpa.RTR{"any": mpa.RTRAll, "send": mpa.RTRSend, "write": mpa.RTRWrite, "read": mpa.RTRRead}

func (l *life) rtr(name string) mpa.RTR {
	k, ok := rtrNames[name]
	if !ok {
		l.Fatalf("%s: no RTR %q: say one of %v", l.at, name, slices.Sorted(maps.Keys(rtrNames)))
	}
	return k
}

// connect calls Connect. The peer has the Request then.
func (l *life) connect(c *command) {
	l.see("connect")
	p := l.connParam(c)
	address := "192.0.2.9:1" // nobody listens there; a queue pair that is not idle does not get so far
	if l.s.QP.State() == rnic.Idle && !l.starting {
		address = l.newPeer(false)
	}
	l.call("connect", c, func(ctx context.Context) error { return l.s.QP.Connect(ctx, address, p) })
	l.starting = l.starting || address != "192.0.2.9:1"
}

// accepts answers the oldest request of the peer with Accept; with another, that of
// another peer.
func (l *life) accepts(c *command) {
	l.see("accept")
	if c.flag("another") {
		was := l.scriptPeer
		l.newPeer(true)
		l.frame(&plainRequest)
		r := l.request()
		l.scriptPeer = was
		l.call("accept", c, func(ctx context.Context) error { return r.Accept(ctx, l.s.QP, rnic.ConnParam{}) })
		return
	}
	p, r := l.connParam(c), l.request()
	l.call("accept", c, func(ctx context.Context) error { return r.Accept(ctx, l.s.QP, p) })
	l.starting = l.starting || l.s.QP.State() == rnic.Idle
}

func (l *life) rejects(c *command) {
	r := l.request()
	l.call("reject", c, func(ctx context.Context) error { return r.Reject(ctx, nil) })
}

// connected sets up a connection without a word of its frames.
func (l *life) connected(c *command) {
	switch role := c.word(); role {
	case "initiator":
		l.connect(c)
		l.quiet()
		l.began = l.stands()
		l.peerAccepts(c)
	case "responder":
		l.peerConnects(c)
		l.quiet()
		l.accepts(c)
		l.quiet()
	case "responder-heard": // and the peer has sent an FPDU, so that this side may send
		l.peerConnects(c)
		l.quiet()
		l.accepts(c)
		l.quiet()
		l.arrived() // the Reply
		l.began = l.stands()
		l.sendSegments("write", l.parse("len=0"))
	default:
		l.Fatalf("%s: no role %q", l.at, role)
	}
	l.began = nil
	l.settle()
	text := l.out.String()
	l.out.Reset()
	if !strings.Contains(text, "state: Idle -> RTS") {
		l.Fatalf("%s: no connection: %s", l.at, text)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "connect: ok") && !strings.HasPrefix(line, "accept: ok") && !strings.HasPrefix(line, "wire: MPA Re") {
			l.out.WriteString(line)
		}
	}
}

// quiet lets all come to rest.
func (l *life) quiet() { synctest.Wait() }

// sleep lets time pass.
func (l *life) sleep(c *command) {
	d := l.duration(c.word())
	time.Sleep(d)
	if d >= rnic.DefaultCloseTimeout {
		l.see("CloseTimeout passes")
	}
}

// arm arms both completion queues.
func (l *life) arm(c *command) {
	what := rnic.NextCompletion
	if c.flag("solicited") {
		what = rnic.NextSolicited
	}
	for _, cq := range slices.Compact([]*rnic.CQ{l.s.SendCQ, l.s.RecvCQ}) {
		if err := cq.Arm(what); err != nil {
			l.say("arm: %s", l.words(err))
		}
	}
}

// overflow makes the completion queue of sends overflow, with flushed receives of another
// queue pair.
func (l *life) overflow(c *command) {
	cq := l.s.SendCQ
	if c.flag("of-receives") {
		cq = l.s.RecvCQ
	}
	l.helper = newQP(l, l.s.Device, l.s.PD, rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxRecvWR: cq.Entries() + 1}).QP
	for range cq.Entries() + 1 {
		if err := l.helper.PostRecv(rnic.RecvWR{}); err != nil {
			l.Fatal(err)
		}
	}
	l.helper.Abort()
}
