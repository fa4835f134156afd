package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
)

// stagSample is how many STags the cases on their values look at.
const stagSample = 64

// sampleSTags registers memory again and again, and returns the STags.
func sampleSTags(t *conformance.T, c *service.Client, n int, keep bool) []uint32 {
	var out []uint32
	for range n {
		r, err := c.Register(t.Context(), service.RegisterArgs{Length: 64, Access: []string{service.RemoteRead}})
		t.Try(err, "opening memory of the target")
		out = append(out, uint32(r.STag))
		if !keep {
			t.Try(c.Release(t.Context(), r.MR), "giving up the target's memory")
		}
	}
	t.Note("STags: %08x", out)
	return out
}

// anotherSession opens a session of its own with the test service.
func anotherSession(t *conformance.T) *service.Client {
	c, err := service.Dial(t.Context(), t.Service().RemoteAddr().String())
	t.Try(err, "opening another session with the test service")
	return c
}

// strides makes sure that no difference between neighbours comes up often. Of values
// that are hard to predict, hardly one does three times, even if they differ in
// their keys only.
func strides(t *conformance.T, what string, values []uint32) {
	const often = 7
	seen := map[uint32]int{}
	for i := 1; i < len(values); i++ {
		d := values[i] - values[i-1]
		if seen[d]++; seen[d] >= often {
			t.Fail(fmt.Sprintf("that one can't tell the next of %s from the one before", what), "a step of 0x%x, %d times in %d", d, seen[d], i)
		}
	}
}

// distinct makes sure that no STag comes up twice.
func distinct(t *conformance.T, values []uint32) {
	seen := map[uint32]bool{}
	for i, v := range values {
		t.Check(!seen[v], "another STag each time", "0x%08x again after %d registrations", v, i)
		seen[v] = true
	}
}

// stagValues: the choice of STags.
var stagValues = []conformance.Case{
	{
		Clause: "rfc5040-8.1.1-9", Name: "of-regions-held", Also: []string{"rfc5042-6.1.1-4", "rfc5042-6.1.1-6"}, Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "The STags of 64 registrations, one after the other, follow no arithmetic sequence, and are all different",
		Run: func(t *conformance.T) {
			tags := sampleSTags(t, t.Service(), stagSample, true)
			distinct(t, tags)
			strides(t, "64 STags", tags)
		},
	},
	{
		Clause: "rfc5040-8.1.1-9", Name: "of-regions-given-up", Also: []string{"rfc5042-6.1.1-4", "rfc5042-6.1.1-6"}, Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "The STags of 64 registrations, each deregistered before the next one, follow no arithmetic sequence",
		Run: func(t *conformance.T) {
			strides(t, "64 STags", sampleSTags(t, t.Service(), stagSample, false))
		},
	},
	{
		Clause: "rfc5040-8.1.1-9", Name: "of-a-window-bound-again", Also: []string{"rfc5042-6.1.1-6"}, Needs: conformance.NeedService,
		Title: "The STags of a window of type 1 that is bound 32 times follow no arithmetic sequence: who knows one that was revoked can't tell the next",
		Run: func(t *conformance.T) {
			needWindow(t, 1)
			s := t.Open(conformance.Setup{})
			r, mw := windowRegion(s), newWindow(t, 1)
			var tags []uint32
			for range 32 {
				tags = append(tags, bindWindow(t, s, mw, r, 0, 64, service.RemoteRead).STag)
			}
			strides(t, "32 STags", tags)
		},
	},
	{
		Clause: "rfc5040-8.1.1-9", Name: "no-fixed-start", Also: []string{"rfc5042-6.1.1-6"}, Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "Two sessions, each with a device of its own, do not begin with the same STags",
		Run: func(t *conformance.T) {
			second := anotherSession(t)
			one := sampleSTags(t, t.Service(), 8, true)
			two := sampleSTags(t, second, 8, true)
			t.Try(second.Close(), "ending the second session")
			same := 0
			for i := range one {
				if one[i] == two[i] {
					same++
				}
			}
			t.Check(same < 2, "other STags in each session", "%d of 8 alike", same)
		},
	},
	{
		Clause: "rfc5042-6.1.1-5", Name: "no-stag-again", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "In 100 registrations, each deregistered before the next one, no STag comes up twice",
		Run: func(t *conformance.T) {
			distinct(t, sampleSTags(t, t.Service(), 100, false))
		},
	},
	{
		Clause: "rfc5040-8.1.1-13", Name: "sparse", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "64 STags are spread over the whole range: their upper octets have 32 values at least, in each quarter of the range",
		Run: func(t *conformance.T) {
			upper, quarters := map[uint32]bool{}, map[uint32]bool{}
			for _, v := range sampleSTags(t, t.Service(), stagSample, true) {
				upper[v>>24], quarters[v>>30] = true, true
			}
			t.Check(len(upper) >= 32 && len(quarters) == 4, "STags all over the range", "%d upper octets, %d of 4 quarters", len(upper), len(quarters))
		},
	},
	{
		Clause: "rfc5042-6.1.1-4", Name: "key-and-index", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "Neither the upper 24 bits of STags nor the lower 8 follow an arithmetic sequence by themselves",
		Run: func(t *conformance.T) {
			tags := sampleSTags(t, t.Service(), stagSample, true)
			var index, key []uint32
			for _, v := range tags {
				index, key = append(index, v>>8), append(key, v<<24)
			}
			strides(t, "the upper 24 bits", index)
			strides(t, "the lower 8 bits", key)
		},
	},
}
