package conformance

import (
	"fmt"

	"urnic/conformance/catalogue"
)

// A State is what a run says of a clause.
type State string

// The states. If several hold, the first one that does is the clause's.
const (
	// Broken: one of its cases failed.
	Broken State = "broken"
	// Unknown: cases ran, and one of them was inconclusive.
	Unknown State = "unknown"
	// Kept: cases ran, and all of them passed.
	Kept State = "kept"
	// NotTried: all of its cases were skipped, for a reason other than the profile.
	NotTried State = "skipped"
	// OtherProfile: its cases need what this run's profile does not offer.
	OtherProfile State = "other profile"
	// OtherLLP: its cases are about a lower layer that this run is not over.
	OtherLLP State = "other lower layer"
	// NotSelected: --only selected none of its cases.
	NotSelected State = "not selected"
	// Untestable: no case can tell from outside.
	Untestable State = "untestable"
	// Open: there is no case yet.
	Open State = "open"
)

// A ClauseState is the result of a clause in a run.
type ClauseState struct {
	Clause string `json:"clause"` // its ID
	State  State  `json:"state"`
	// Reason says in a sentence why the clause was not tested, if it wasn't.
	Reason string `json:"reason,omitempty"`
}

// A Coverage has how much of an RFC the cases of a suite test, for any target,
// and the results of the clauses in this run.
type Coverage struct {
	RFC string `json:"rfc"` // "RFC 5041"

	// Clauses by what can be known of them: with cases, without any for the reason
	// that the catalogue gives, and open, which is neither.
	Binding Clauses `json:"binding"` // MUST and MUST NOT
	Advised Clauses `json:"advised"` // SHOULD and SHOULD NOT

	Totals Totals `json:"totals"` // results of the cases named by this RFC's clauses
}

// Clauses counts clauses.
type Clauses struct {
	Tested     int `json:"tested"` // by cases of the suite, in this run or not
	Untestable int `json:"untestable"`
	Open       int `json:"open"`
	// Run counts those of the tested ones that this run exercised, which are Kept, Broken
	// or Unknown, as State has it.
	Run     int `json:"run"`
	Kept    int `json:"kept"`
	Broken  int `json:"broken"`
	Unknown int `json:"unknown"`
	// The other tested ones, by why this run did not exercise them.
	NotTried     int `json:"skipped"`
	OtherProfile int `json:"other_profile"`
	OtherLLP     int `json:"other_lower_layer"`
	NotSelected  int `json:"not_selected"`
}

// Plus returns the sum of two counts.
func (n Clauses) Plus(m Clauses) Clauses {
	return Clauses{
		Tested: n.Tested + m.Tested, Untestable: n.Untestable + m.Untestable, Open: n.Open + m.Open,
		Run: n.Run + m.Run, Kept: n.Kept + m.Kept, Broken: n.Broken + m.Broken, Unknown: n.Unknown + m.Unknown,
		NotTried: n.NotTried + m.NotTried, OtherProfile: n.OtherProfile + m.OtherProfile, OtherLLP: n.OtherLLP + m.OtherLLP,
		NotSelected: n.NotSelected + m.NotSelected,
	}
}

// add counts one clause.
func (n *Clauses) add(s State) {
	switch s {
	case Untestable:
		n.Untestable++
		return
	case Open:
		n.Open++
		return
	case Broken:
		n.Broken++
	case Unknown:
		n.Unknown++
	case Kept:
		n.Kept++
	case NotTried:
		n.NotTried++
	case OtherProfile:
		n.OtherProfile++
	case OtherLLP:
		n.OtherLLP++
	case NotSelected:
		n.NotSelected++
	}
	n.Tested++
	n.Run = n.Kept + n.Broken + n.Unknown
}

// A history is what is known of a clause after a run.
type history struct {
	verdicts              map[Verdict]bool
	skipped, other, layer string // why a case was skipped, or is for other profiles or lower layers
	notSelected           bool
}

// states tells how the clauses of the catalogue fared in a run.
func (r *Runner) states(results []Result) []ClauseState {
	needs, _ := r.Profile.Offers()
	return states(r.Groups, r.selects, needs, r.Profile.LLP(), results)
}

func states(groups []Group, selects func(string, Case) bool, offers Needs, over LLP, results []Result) []ClauseState {
	of := map[string][]*Result{} // by case
	for i := range results {
		of[results[i].Case] = append(of[results[i].Case], &results[i])
	}
	known := map[string]*history{}
	for _, g := range groups {
		for _, c := range g.Cases {
			for _, id := range c.Clauses() {
				h := known[id]
				if h == nil {
					h = &history{verdicts: map[Verdict]bool{}}
					known[id] = h
				}
				h.note(c, selects(g.Name, c), offers, over, of[c.ID()])
			}
		}
	}
	var out []ClauseState
	for _, c := range catalogue.All() {
		s := ClauseState{Clause: c.ID}
		switch h := known[c.ID]; {
		case h != nil:
			s.State, s.Reason = h.state()
		case c.Untestable != "":
			s.State, s.Reason = Untestable, c.Untestable
		default:
			s.State, s.Reason = Open, "there is no case yet"
		}
		out = append(out, s)
	}
	return out
}

// note adds a case of the clause, with its results.
func (h *history) note(c Case, selected bool, offers Needs, over LLP, results []*Result) {
	lacking := lacks(c.Needs, offers)
	switch {
	case !selected:
		h.notSelected = true
	case c.leftOut(over) != "":
		h.layer = "its cases are about MPA over TCP"
		if over != RDP {
			h.layer = "its cases are for --llp rdp"
		}
	case lacking != "":
		h.other = lacking
	case len(results) == 0:
		h.skipped = "its cases were not tried"
	default:
		for _, res := range results {
			h.verdicts[res.Verdict] = true
			if res.Verdict == Skipped {
				h.skipped = res.Reason
			}
		}
	}
}

func (h *history) state() (s State, reason string) {
	switch {
	case h.verdicts[Fail]:
		return Broken, ""
	case h.verdicts[Inconclusive]:
		return Unknown, ""
	case h.verdicts[Pass]:
		return Kept, ""
	case h.skipped != "":
		return NotTried, h.skipped
	case h.other != "":
		return OtherProfile, h.other
	case h.layer != "":
		return OtherLLP, h.layer
	}
	return NotSelected, "--only selects none of its cases"
}

// lacks says why a case is for another profile than one that offers so much, or "".
func lacks(needs, offers Needs) string {
	switch lacking := needs &^ offers; {
	case needs&NeedRPC > offers&NeedRPC:
		return "its cases are for the profile rpcrdma"
	case needs&NeedRPC < offers&NeedRPC:
		return "its cases are for the profiles raw, rping and urnic"
	case lacking&NeedService != 0:
		return "its cases are for the profile urnic: they need the test service"
	case lacking&(NeedBuffer|NeedRecv) != 0:
		return fmt.Sprintf("its cases are for the profiles rping and urnic: they need %s", lacking)
	}
	return "" // an NFS export is a matter of flags, not of the profile
}

// coverage tells RFC by RFC how much of the catalogue the cases test, and how the
// clauses fared in results, which may be none.
func coverage(clauses []ClauseState, results []Result) []Coverage {
	totals := map[string]*Totals{}
	for _, r := range results {
		rfc := catalogue.Clause{ID: r.Clauses[0]}.RFC()
		if totals[rfc] == nil {
			totals[rfc] = new(Totals)
		}
		totals[rfc].Add(r.Verdict)
	}
	var out []Coverage
	at := map[string]int{}
	for i, c := range catalogue.All() {
		k, ok := at[c.RFC()]
		if !ok {
			k = len(out)
			at[c.RFC()] = k
			out = append(out, Coverage{RFC: c.RFC()})
			if t := totals[c.RFC()]; t != nil {
				out[k].Totals = *t
			}
		}
		count := &out[k].Advised
		if c.Level.Binding() {
			count = &out[k].Binding
		}
		count.add(clauses[i].State)
	}
	return out
}

// CoverageOf returns how much of the catalogue the groups' cases test.
func CoverageOf(groups []Group) []Coverage {
	none := func(string, Case) bool { return false }
	return coverage(states(groups, none, 0, TCP, nil), nil)
}
