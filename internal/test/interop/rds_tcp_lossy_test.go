//go:build interop

package interop

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"urnic/ulp/rds"
)

// badly has the guest's link lose, corrupt and double packets in both directions.
const badly = `
modprobe ifb numifbs=0
ip link add ifb0 type ifb && ip link set ifb0 up &&
tc qdisc add dev eth1 ingress &&
tc filter add dev eth1 ingress matchall action mirred egress redirect dev ifb0 &&
for d in eth1 ifb0; do tc qdisc add dev $d root netem loss 0.5% corrupt 0.5% duplicate 0.5% || exit 1; done`

// again undoes it.
const again = `tc qdisc del dev eth1 root; tc qdisc del dev eth1 ingress; ip link del ifb0`

// lossy exchanges 50,000 messages over 250 pairs of sockets while the network is bad.
func (s sides) lossy(t *testing.T) {
	const sockets, messages = 125, 200
	n := s.overTCP(t)
	theGuest.run(t, badly)
	defer theGuest.run(t, again)
	n.flows(s, sockets, messages, []int{64, 0, 1000, 300, 2000}).run()
	shown := theGuest.run(t, "for d in eth1 ifb0; do tc -s qdisc show dev $d root; done")
	if dropped := regexp.MustCompile(`dropped [1-9]`).FindAllString(shown, -1); len(dropped) != 2 {
		t.Errorf("netem has not lost packets in both directions:\n%s", shown)
	}
	t.Log(fmt.Sprint(strings.Fields(shown)))
	n.wantNone(rds.PeerViolation, rds.MessageLost, rds.NoSocket, rds.PeerRestarted)
}
