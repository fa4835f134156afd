package main

// noAllocations is met by what rounds to none: in a run of many thousands of
// requests, the runtime has some allocations of its own.
var noAllocations = target{atMost: true, value: 0.0005, write: allocsText, label: "0"}

// goals are the rows that have a target.
var goals = []row{
	{"RDMA Write 1 MiB, bandwidth, to raw TCP that batches", atLeast(0.90), toRaw("urnic write 1M", bandwidth)},
	{"RDMA Write 1 MiB, CRC off, to raw TCP that batches", atLeast(0.97), toRaw("urnic write 1M, CRC off", bandwidth)},
	{"RDMA Write 1 MiB, CRC off, to UCX `tag_bw` 1 MiB", atLeast(1.0), toPeer("urnic write 1M, CRC off", "UCX tag_bw 1M", bandwidth)},
	{"RDMA Write 1 MiB, to UCX `ucp_put_bw` 1 MiB", atLeast(2), toPeer("urnic write 1M", "UCX ucp_put_bw 1M", bandwidth)},
	{"RDMA Write 64 KiB, to raw TCP with a write for each", atLeast(0.95), toRaw("urnic write 64K", bandwidth)},
	{"RDMA Read 1 MiB, depth 16, to raw TCP that batches", atLeast(0.85), toRaw("urnic read 1M", bandwidth)},
	{"RDMA Read 1 MiB, depth 16, to UCX `ucp_get` 1 MiB", atLeast(4), toPeer("urnic read 1M", "UCX ucp_get 1M", bandwidth)},
	{"Send 64 B ping-pong, event mode, time to that of raw TCP", atMost(1.30), toRaw("urnic send 64 ping-pong, event", medianTime)},
	{"Send 64 B ping-pong, busy polling, time to that of raw TCP that spins", atMost(1.25), toRaw("urnic send 64 ping-pong, busy", medianTime)},
	{"Send 64 B ping-pong, busy polling, time to that of libfabric `fi_pingpong -e msg`", atMost(1.0), toPeer("urnic send 64 ping-pong, busy", "libfabric ping-pong 64", latency)},
	{"Send 64 B ping-pong, busy polling, time to that of UCX `tag_lat`", atMost(1.0), toPeer("urnic send 64 ping-pong, busy", "UCX tag_lat 64", latency)},
	{"RDMA Write 64 B, depth 256, messages a second", atLeast(5e6).in(messageRate), alone("urnic write 64", messageRate)},
	{"RDMA Write 64 B, depth 256, messages to UCX `tag_bw` 64 B", atLeast(10), toPeer("urnic write 64", "UCX tag_bw 64", messageRate)},
	{"Send/Recv 64 B, depth 256, messages a second", atLeast(3e6).in(messageRate), alone("urnic send 64", messageRate)},
	{"64 active QPs, sum of bandwidth, to one QP", atLeast(0.85), scaling("urnic 1 and 64 QPs", 64)},
	{"10,000 connected idle QPs, both ends in one process: resident memory a QP and side", atMost(16 << 10).in(idleMemory), idle("urnic idle QPs")},
	{"connections a second (TCP, MPA and QP), 4 at a time, to raw TCP connect and accept, 4 at a time", atLeast(0.5), toRaw("urnic connections, 4 at a time", connectRate)},
	{"allocations per work request in the steady state: the most of Writes, Sends and Reads of 64 B", noAllocations, allocations("urnic write 64", "urnic send 64", "urnic read 64")},
	{"drop-in: `ib_write_bw -R` 64 KiB to `urnic perf`, with as many outstanding", atLeast(0.85), toPeer("ib_write_bw 64K", "urnic write 64K, depth 128, two processes", bandwidth)},
	{"drop-in: `ib_write_bw -R` 1 MiB to `urnic perf`, with as many outstanding", atLeast(0.85), toPeer("ib_write_bw 1M", "urnic write 1M, depth 128, two processes", bandwidth)},
	{"drop-in: `ib_send_lat -R` 64 B, time to that of `urnic perf --poll busy`", atMost(1.3), toPeer("ib_send_lat 64", "urnic send 64 ping-pong, busy, again", medianTime)},
	{"drop-in: start-up, how much longer `ibv_devices` lasts with it than without", atMost(30e6).in(startTime), startCost("ibv_devices")},
}

// besides are the rows that show where the peers stand otherwise.
var besides = []row{
	{"RDMA Write 64 B, depth 256, messages to raw TCP with a write for each", noTarget, toStream("urnic write 64", perMessage, messageRate)},
	{"RDMA Write 64 B, depth 256, messages to raw TCP that batches", noTarget, toStream("urnic write 64", batched, messageRate)},
	{"Send/Recv 64 B, depth 256, messages to raw TCP with a write for each", noTarget, toStream("urnic send 64", perMessage, messageRate)},
	{"Send/Recv 64 B, depth 256, messages to raw TCP that batches", noTarget, toStream("urnic send 64", batched, messageRate)},
	{"RDMA Write 64 KiB, to raw TCP that batches", noTarget, toStream("urnic write 64K", batched, bandwidth)},
	{"RDMA Write 1 MiB, to raw TCP with a write for each", noTarget, toStream("urnic write 1M", perMessage, bandwidth)},
	{"RDMA Read 1 MiB, depth 16, to raw TCP with a write for each", noTarget, toStream("urnic read 1M", perMessage, bandwidth)},
	{"drop-in: `ib_write_bw -R` 64 KiB to `urnic perf local`, with as many outstanding", noTarget, toPeer("ib_write_bw 64K", "urnic write 64K, depth 128", bandwidth)},
	{"drop-in: `ib_write_bw -R` 1 MiB to `urnic perf local`, with as many outstanding", noTarget, toPeer("ib_write_bw 1M", "urnic write 1M, depth 128", bandwidth)},
	{"RDMA Write 1 MiB, CRC off, to UCX `tag_bw` with 16 outstanding", noTarget, toPeer("urnic write 1M, CRC off", "UCX tag_bw 1M, depth 16", bandwidth)},
	{"RDMA Write 1 MiB, to UCX `ucp_put_bw` with 16 outstanding", noTarget, toPeer("urnic write 1M", "UCX ucp_put_bw 1M, depth 16", bandwidth)},
	{"RDMA Read 1 MiB, depth 16, to UCX `ucp_get` with 16 outstanding", noTarget, toPeer("urnic read 1M", "UCX ucp_get 1M, depth 16", bandwidth)},
	{"raw TCP of Go, the baseline of 1 MiB, to iperf3 with calls of 1 MiB", noTarget, rawTo("urnic write 1M, CRC off", "iperf3 1M", bandwidth)},
	{"RDMA Write 1 MiB, CRC off, to iperf3 with calls of 1 MiB", noTarget, toPeer("urnic write 1M, CRC off", "iperf3 1M", bandwidth)},
	{"Send 1 MiB ping-pong, busy polling, time to that of libfabric `fi_pingpong -e msg`", noTarget, toPeer("urnic send 1M ping-pong, busy", "libfabric ping-pong 1M", latency)},
	{"connections a second (TCP, MPA and QP), one at a time, to raw TCP connect and accept, one at a time", noTarget, toRaw("urnic connections, one at a time", connectRate)},
}
