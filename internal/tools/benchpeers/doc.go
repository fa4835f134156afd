// Command benchpeers measures urnic beside other programs that move bytes over
// TCP, and writes the page docs/performance.md:
//
//	make bench-peers
//	make bench-peers PEERSFLAGS='--rounds 3 --duration 500ms --out bin/try.md'
//	make bench-peers PEERSFLAGS='--only ucx --out bin/try.md'
//	make bench-peers PEERSFLAGS=--render
//
// The peers are libfabric's fi_pingpong, UCX's ucx_perftest and iperf3, as the
// distribution has them; what is missing is installed with apt-get. All run on
// this machine, over loopback TCP, with their shared memory off. perftest's programs
// and ibv_devices run on urnic, by `urnic run`: they show what liburnic costs.
//
// A contest is one command of one program (contests.go). A round runs all of
// them once, those that are compared one after the other; then comes the next
// round (rounds.go). A row of the page takes two contests of the same round and
// makes a ratio of them, so that both are of one moment; the page shows the
// median of the ratios and their range (rows.go, stats.go). How each program
// says what it has measured is in a parser of its own (urnic.go, ucx.go,
// libfabric.go, iperf.go, perftest.go).
//
// What was measured is kept as results.json beside the plots. With --render, the
// page is made anew of that, after a change of its text (page.md.tmpl,
// prose.md.tmpl); a test checks that the page is what those make of it.
//
// Others that use the processors meanwhile spoil a run (others.go): it is repeated
// a few times, and the page says how busy they were.
//
// A program that is missing and a run that fails stand on the page as errors,
// and the exit status is 1.
package main
