package main

import (
	"fmt"
	"strings"

	"urnic/ulp/rds/rdsstress"
)

// perfColumns are those of --show-perfdata before the counters of the node. rds-stress has one more value than names in each
// line: it prints the bytes that RDMA moves in and those that it moves out, and names only one of them. Here it is their sum.
const perfColumns = "::nr_tasks:count,req_size:bytes,ack_size:bytes,rdma_size:bytes,req_sent:count,thruput:kB/s,thruput_rdma:kB/s," +
	"tx_delay:microseconds,rtt:microseconds,cpu:percent"

// perfHeading prints the names of the columns of --show-perfdata.
func (v *rdsStressView) perfHeading() {
	var line strings.Builder
	line.WriteString(perfColumns)
	v.last = v.node.Info(0).Counters
	for _, c := range v.last {
		fmt.Fprintf(&line, ",%s:count", c.Name)
	}
	v.out.print(line.String())
}

// perfRow prints a line of --show-perfdata. All but the first five values are rates or means.
func (v *rdsStressView) perfRow(s *rdsstress.Sample) {
	p := &v.c.Params
	seconds := max(s.Seconds, 1e-9)
	var line strings.Builder
	fmt.Fprintf(&line, "::%d,%d,%d,%d,%d,%f,%f,%f,%f,%f", s.Tasks, p.RequestSize, p.AckSize, p.RDMASize, s.RequestsSent,
		float64(s.BytesSent+s.BytesReceived)/1024/seconds, float64(s.RDMAIn+s.RDMAOut)/1024/seconds,
		float64(s.SendTime.Nanoseconds())/1000, float64(s.RTT.Nanoseconds())/1000, max(v.cpu.percent(), 0))
	now := v.node.Info(0).Counters
	for i, c := range now {
		fmt.Fprintf(&line, ",%f", float64(c.Value-v.last[i].Value)/seconds)
	}
	v.last = now
	v.out.print(line.String())
}
