// Package interop shows that urnic works with an iWARP that others wrote: Linux
// siw, in a guest that lab/ builds and boots; and with Rx of others, OpenAFS's and Linux's, see
// lab/rx. Its tests want the build tag interop; with dropin too, they try Debian's tools over
// the drop-in library. `make interop` runs them all.
//
// The tests boot one guest. Our side runs in the test's process, as the urnic program,
// or as a tool of Debian's (rdmacm-utils, perftest) by `urnic run`; the guest reaches it
// at 10.0.2.2, and it reaches the guest through forwarded ports. Recordings of our side
// go to artifacts/interop in the project's directory, and tshark must read them without
// a malformed packet.
//
// siw has faults of its own that come by chance: a fault names them. withSIW runs a test again if
// what a run has left, our recording and the log of the guest's kernel, shows one. What recognises
// them is tested without the tags, and without a guest.
package interop
