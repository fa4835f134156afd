//go:build linux

package dropin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"urnic/internal/dropin/rendezvous"
	"urnic/mpa"
)

// times are how long the engine waits for programs, here and at the peer. Most stand for what hardware and InfiniBand's
// connection manager take, and programs count on them without knowing: where a machine stalls for longer, a program ends
// with an error that is none. So URNIC_TIMES sets others, for tests and for slow machines.
type times struct {
	// fetch is how long the news that a peer has ended the connection waits for the program to poll what the peer sent
	// before.
	fetch time.Duration
	// act is how long it waits then, so that the program can act on that: one that looks after completions and events in
	// two threads, such as rping, otherwise often learns of the end first. From hardware the news takes about that long.
	act time.Duration
	// refused is how long a peer that refuses a connection may take to listen after all. Programs tell each other over one
	// connection that they are going to listen for the next one (perftest does), and count on how long it takes others to
	// resolve a route.
	refused time.Duration
	// connect is how long TCP may try to reach a peer: about what Linux gives the connection manager of InfiniBand.
	connect time.Duration
	// request and reply are how long a peer may take for its part of the start-up of MPA. The reply comes when the peer's
	// program accepts.
	request, reply time.Duration
	// service is how long a peer may take to say which queue pair of datagrams serves: what Linux gives it.
	service time.Duration
	// disconnect is how long a disconnect may take, with the requests that are posted, before the connection is reset.
	disconnect time.Duration
	// release is how long a queue pair that is given up may hold up the program, to close its connection.
	release time.Duration
	// farewell is how long the peers of a process that exits have to ask for acknowledgments, unless they close the
	// connection before: one asks when its program polls, and the answer to what it has asked before is there.
	farewell time.Duration
	// come is how long the peer of a queue pair without rdma_cm has at least to come, once there is something to send.
	come time.Duration
	// goneLeast and goneMost bound how long a Send to a peer that has gone takes to fail. What programs set may be minutes,
	// or without bound: that is for networks that lose packets, and TCP has seen to that.
	goneLeast, goneMost time.Duration
	// receive is how long a Send waits for a receive, if it is not known what its program has set: programs written for
	// InfiniBand count on RNR NAKs, mostly without end. Meanwhile nobody sees whether the peer lives.
	receive time.Duration
	// receiveLeast is how long a Send waits at least, even one that is not to be sent again. Timers may be a few
	// microseconds, which are for adapters; and programs that leave rnr_retry at 0, such as fio, count on a peer that posts
	// the next receive before an acknowledgment has crossed the network.
	receiveLeast time.Duration
}

func defaultTimes() times {
	return times{
		fetch:        100 * time.Millisecond,
		act:          10 * time.Millisecond,
		refused:      300 * time.Millisecond,
		connect:      time.Minute,
		request:      mpa.DefaultRequestTimeout,
		reply:        mpa.DefaultReplyTimeout,
		service:      time.Minute,
		disconnect:   30 * time.Second,
		release:      time.Second,
		farewell:     250 * time.Millisecond,
		come:         rendezvous.ShortestBudget,
		goneLeast:    0,
		goneMost:     2 * time.Second,
		receive:      30 * time.Second,
		receiveLeast: time.Second,
	}
}

// named returns the times by their names in URNIC_TIMES.
func (t *times) named() map[string]*time.Duration {
	return map[string]*time.Duration{
		"fetch": &t.fetch, "act": &t.act, "refused": &t.refused, "connect": &t.connect,
		"request": &t.request, "reply": &t.reply, "service": &t.service,
		"disconnect": &t.disconnect, "release": &t.release, "farewell": &t.farewell, "come": &t.come,
		"gone-least": &t.goneLeast, "gone-most": &t.goneMost, "receive": &t.receive, "receive-least": &t.receiveLeast,
	}
}

// longestTime is the most that can be set.
const longestTime = 24 * time.Hour

// parse sets what URNIC_TIMES says: NAME=TIME, with commas between.
func (t *times) parse(value string) error {
	if value == "" {
		return nil
	}
	named := t.named()
	seen := map[string]bool{}
	for one := range strings.SplitSeq(value, ",") {
		name, text, _ := strings.Cut(one, "=")
		to := named[name]
		if to == nil || seen[name] {
			return fmt.Errorf("%q: must be NAME=TIME, such as refused=2s, each NAME once and one of %s", one, strings.Join(slices.Sorted(maps.Keys(named)), ", "))
		}
		seen[name] = true
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > longestTime {
			return fmt.Errorf("%q: the time must be from 0s to 24h, such as 300ms", one)
		}
		*to = d
	}
	if t.goneLeast > t.goneMost {
		return fmt.Errorf("gone-least=%v is more than gone-most=%v", t.goneLeast, t.goneMost)
	}
	return nil
}

// leaveSlack is what Leave may take beyond its waits, in a process that exits.
const leaveSlack = 500 * time.Millisecond

// leave returns how long Leave takes at most.
func (t *times) leave() time.Duration { return t.farewell + t.release + recordDelay + leaveSlack }
