package machine

import (
	"fmt"
	"slices"
	"testing"

	"urnic/ulp/rds/wire"
)

// An exchange is what two programs do. Each part begins when the one before has come to rest.
type exchange struct {
	name  string
	parts []func(*sim)
}

// sends returns a part in which a socket of a node sends messages to a port of the other.
func sends(node, socket, port, count, size int, o Options) func(*sim) {
	return func(s *sim) {
		for range count {
			n := s.nodes[node]
			s.send(n.sockets[socket], s.nodes[1-node], uint16(simPort+port), size, o)
		}
	}
}

// operations returns a part with a message for each kind of operation.
func operations(size int) func(*sim) {
	return func(s *sim) {
		for kind := range 3 {
			sends(0, kind%2, 0, 1, size, Options{Op: anOperation(kind)})(s)
		}
	}
}

// pings returns a part in which a node pings the other.
func pings(node int) func(*sim) {
	return func(s *sim) { s.send(s.nodes[node].sockets[0], s.nodes[1-node], wire.PingPort, 0, Options{}) }
}

// waits returns a part in which all sockets of a node wait for acknowledgements.
func waits(node int) func(*sim) {
	return func(s *sim) {
		for _, sock := range s.nodes[node].sockets {
			sock.Hasten(s.now)
		}
	}
}

// reads returns a part in which programs begin to read, or end it.
func reads(yes bool) func(*sim) { return func(s *sim) { s.unread = !yes } }

// all returns a part of several.
func all(parts ...func(*sim)) func(*sim) {
	return func(s *sim) {
		for _, p := range parts {
			p(s)
		}
	}
}

func cutAll(keepDialler, keepOther int) func(*sim) {
	return func(s *sim) {
		for _, l := range s.links {
			if !l.cut {
				s.cut(l, [2]int{keepDialler, keepOther})
			}
		}
	}
}

func closeAll(node int) func(*sim) {
	return func(s *sim) {
		for i := range simSockets {
			s.nodes[node].rebind(i)
		}
	}
}

// gone has a node go away, and come back some steps later.
func gone(node int, deaf bool) func(*sim) {
	return func(s *sim) {
		s.leave(node, deaf)
		s.plan = append(s.plan, simFault{s.steps + 25, func(s *sim) { s.restart(node) }})
		slices.SortStableFunc(s.plan, func(a, b simFault) int { return a.at - b.at })
	}
}

const everything = 1 << 20

var plain Options

var exchanges = []exchange{
	{"connect", []func(*sim){sends(0, 0, 0, 1, 20, plain)}},
	{"connect from the higher address", []func(*sim){sends(1, 0, 0, 1, 20, plain)}},
	{"both connect", []func(*sim){all(sends(0, 0, 0, 1, 20, plain), sends(1, 0, 0, 1, 20, plain))}},
	{"small messages", []func(*sim){sends(0, 0, 1, 1, 8, plain), all(sends(0, 0, 1, 3, 20, plain), sends(1, 1, 0, 3, 20, plain))}},
	{"large messages", []func(*sim){all(sends(0, 0, 1, 2, 4000, plain), sends(1, 1, 0, 2, 5000, plain))}},
	{"acknowledgements", []func(*sim){sends(0, 0, 0, 20, 20, plain), waits(0), sends(0, 1, 0, 2, 20, plain), waits(0)}},
	{"pings", []func(*sim){all(pings(0), sends(0, 0, 0, 1, 20, plain)), pings(1)}},
	{"congestion", []func(*sim){
		reads(false), sends(0, 0, 0, 5, 3000, plain), sends(0, 1, 0, 2, 3000, plain), reads(true), sends(0, 1, 0, 2, 3000, plain),
	}},
	{"no memory", []func(*sim){
		reads(false), sends(0, 0, 0, 4, 4500, Options{IgnoreCongestion: true}), sends(0, 1, 1, 4, 4500, Options{IgnoreCongestion: true}),
		sends(1, 0, 0, 1, 20, plain), reads(true),
	}},
	{"RDMA operations", []func(*sim){all(sends(0, 0, 0, 1, 20, plain), operations(3000), sends(0, 0, 0, 1, 20, plain)), operations(20)}},
	{"reconnect", []func(*sim){sends(0, 0, 0, 2, 20, plain), all(cutAll(0, 0), sends(0, 0, 0, 1, 20, plain), sends(1, 0, 0, 1, 20, plain))}},
	{"restart", []func(*sim){
		all(sends(0, 0, 0, 2, 20, plain), sends(1, 0, 0, 2, 20, plain)), func(s *sim) { s.restart(1) },
		all(sends(0, 0, 0, 2, 20, plain), sends(1, 0, 0, 2, 20, plain)),
	}},
	{"all paths", []func(*sim){
		sends(0, 0, 0, 1, 20, plain),
		all(sends(0, 0, 0, 1, 20, plain), sends(0, 1, 0, 1, 20, plain), sends(0, 2, 0, 1, 20, plain), sends(1, 0, 0, 1, 20, plain), sends(1, 2, 0, 1, 20, plain)),
	}},
}

// A simFault is something that goes wrong at a step.
type simFault struct {
	at     int
	strike func(*sim)
}

// faults are what may go wrong at any step. Of what is under way when a link is cut,
// all, nothing, or what goes in one direction still arrives.
var faults = []struct {
	name    string
	restart bool
	strike  func(*sim)
}{
	{name: "cut", strike: cutAll(0, 0)},
	{name: "cut behind what is under way", strike: cutAll(everything, everything)},
	{name: "cut in one direction", strike: cutAll(everything, 0)},
	{name: "cut in the other direction", strike: cutAll(0, everything)},
	{name: "restart of node 0", restart: true, strike: func(s *sim) { s.restart(0) }},
	{name: "restart of node 1", restart: true, strike: func(s *sim) { s.restart(1) }},
	{name: "node 1 is gone for a while", restart: true, strike: gone(1, false)},
	{name: "node 1 accepts nothing for a while", restart: true, strike: gone(1, true)},
	{name: "node 0 closes its sockets", strike: closeAll(0)},
	{name: "node 1 closes its sockets", strike: closeAll(1)},
}

// run runs an exchange with faults, and returns how many steps it took to come to rest.
func (x *exchange) run(w world, seed uint64, plan []simFault, made func(*sim)) (steps int) {
	s := newSim(w, seed, 2)
	made(s)
	s.plan = plan
	for _, part := range x.parts {
		part(s)
		s.settled()
		s.rest()
	}
	s.unread = false
	for _, f := range s.plan {
		f.strike(s)
	}
	s.plan = nil
	s.gather()
	steps = s.steps
	s.settle()
	return steps
}

// allows reports whether an exchange can be in a world.
func (w *world) allows(x *exchange) bool {
	switch x.name {
	case "RDMA operations":
		return w.carrier.Operations
	case "all paths":
		return w.carrier.Paths > 1
	}
	return true
}

// Whatever goes wrong at any step of an exchange, what was accepted is delivered once and in
// order, or its sender is told.
func TestFaultsAtEveryStep(t *testing.T) {
	var all tally
	all.wants(t, 80_000)
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			for _, x := range exchanges {
				if !w.allows(&x) {
					continue
				}
				steps := 0
				replayed(t, x.name, func(made func(*sim)) { steps = x.run(w, 0, nil, made) })
				for _, f := range faults {
					for at := 1; at <= steps; at += stride {
						replayed(t, fmt.Sprintf("%s, %s at step %d", x.name, f.name, at), func(made func(*sim)) {
							x.run(w, 0, []simFault{{at, f.strike}}, made)
						})
						runs++
					}
				}
			}
			all.add(runs)
			t.Logf("%d schedules", runs)
		})
	}
}

// The same for two faults at the beginning of a connection, of which the second follows the
// first by less than a handshake takes.
func TestTwoFaultsAtEveryStep(t *testing.T) {
	const longest = 40
	var all tally
	all.wants(t, 80_000)
	x := &exchanges[0]
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			runs, steps := 0, 0
			replayed(t, x.name, func(made func(*sim)) { steps = x.run(w, 1, nil, made) })
			for i, f := range faults[:6] {
				second := faults[(i*5+2)%6] // each follows another one
				for at := 1; at <= steps; at++ {
					for gap := 1; gap <= longest; gap += stride {
						replayed(t, fmt.Sprintf("%s, %s at step %d, %s %d steps later", x.name, f.name, at, second.name, gap), func(made func(*sim)) {
							x.run(w, 1, []simFault{{at, f.strike}, {at + gap, second.strike}}, made)
						})
						runs++
					}
				}
			}
			all.add(runs)
			t.Logf("%d schedules", runs)
		})
	}
}
