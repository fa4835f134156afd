package life

import "fmt"

// A script is what the programs of both sides do, in their order, and what happens to the
// connection. See newSide for words that set a side up, kinds for requests, and program and
// happen for the others.
type script struct {
	a, b string
	rtr  string // the ready-to-receive indication: none, "send", or "read"
}

func (s *script) String() string {
	text := fmt.Sprintf("%q against %q", s.a, s.b)
	if s.rtr != "" {
		text += " with RTR " + s.rtr
	}
	return text
}

var scripts = []script{
	// Graceful ends.
	{a: "send disconnect", b: "recv"},
	{a: "send", b: "recv send disconnect"},
	{a: "disconnect", b: "disconnect"},
	{a: "send disconnect", b: "recv disconnect"},
	{a: ":patient send disconnect", b: ":patient recv"},
	{a: "recv disconnect", b: "disconnect recv"},

	// Terminates, and what breaks a rule.
	{a: "write", b: "recv terminate"},
	{a: "send", b: ""},
	{a: "send terminate", b: "recv terminate"},
	{a: "terminate", b: "disconnect"},
	{a: "send send", b: "recv send"},

	// Reads, fences, pairs, and local requests.
	{a: "read", b: "disconnect"},
	{a: "read fence", b: "recv"},
	{a: "read rfence", b: "recv"},
	{a: "read write rfence", b: "recv"},
	{a: "pair fence", b: "recv recv"},
	{a: "reads read", b: ""},
	{a: "reads", b: "abort"},
	{a: "write local send", b: "recv"},
	{a: "read lfence silent", b: ""},
	{a: ":batches write silent read write", b: ""},
	{a: ":batches silent write", b: "terminate"},
	{a: "write badlocal send", b: "recv"},
	{a: "badlocal badread", b: "disconnect"},
	{a: "read badread write", b: ""},
	{a: "read badsink write", b: ""},
	{a: ":ord0 write read", b: ""},

	// A full LLP.
	{a: "full write room", b: "write"},
	{a: "full write disconnect room", b: ""},
	{a: "full write pair one room", b: "recv"},
	{a: "full write local room", b: ""},
	{a: "read", b: "full disconnect room"},
	{a: "full terminate room", b: ""},
	{a: "full write spoil room", b: ""},
	{a: ":batches write full silent write spoil room", b: ""},

	// The loss of the connection.
	{a: "read disconnect", b: "cut"},
	{a: "disconnect cut", b: "disconnect"},
	{a: "write disconnect", b: "break"},
	{a: "break", b: "read disconnect"},
	{a: "read cut", b: "disconnect"},
	{a: "send abort", b: "recv"},
	{a: "break terminate", b: "disconnect"},

	// Time.
	{a: ":timers write disconnect", b: ":timers"},
	{a: ":timers terminate", b: ":timers disconnect"},
	{a: ":timers send", b: ":timers"},
	{a: ":timers break write", b: ":timers"},

	// Completion queues.
	{a: "write cq", b: "write"},
	{a: "cq", b: "disconnect"},
	{a: ":cq1 write write", b: "disconnect"},
	{a: ":cq1 silent write write", b: ""},
	{a: "disconnect cq", b: ""},

	// Stopped queues, and late requests.
	{a: "stop write go", b: ""},
	{a: "write stop write", b: ""},
	{a: "reads stop go", b: ""},
	{a: "write stop disconnect", b: ""},
	{a: "disconnect late", b: ""},
	{a: "write terminate late", b: ""},
	{a: "abort late", b: "late"},

	// Ready-to-receive indications.
	{a: "disconnect", b: "disconnect", rtr: "send"},
	{a: "disconnect", b: "disconnect", rtr: "read"},
	{a: "read disconnect", b: "", rtr: "read"},
	{a: "", b: "write disconnect", rtr: "read"},

	// Queue pairs that are used again.
	{a: "abort reset", b: "abort reset"},
	{a: "terminate reset", b: "disconnect reset"},
	{a: "abort reset write connect", b: "write reset accept"},
	{a: "disconnect reset connect write disconnect", b: "accept"},
	{a: "write disconnect write stop connect go", b: "accept"},
	{a: "terminate reset connect read", b: "reset accept disconnect"},
}

// regressions are schedules that have shown a fault, as -replay takes them.
var regressions = []string{}
