package sysfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

func devices() []Device {
	loopback := [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
	return []Device{
		{Name: "urnic0", Version: "v1", GUID: [8]byte{2, 0, 0xab, 0xff, 0xfe, 0, 0, 9}, IWARP: true, Ports: []Port{
			{GIDs: []GID{{loopback, "lo"}, {[16]byte{0xfe, 0x80, 15: 1}, "eth0"}}}, {GIDs: []GID{{loopback, "lo"}}},
		}},
		{Name: "mlx5_0", Ports: []Port{{GIDs: []GID{{loopback, "eth0"}}}}},
	}
}

func find(all []Entry) func(string) (Entry, bool) {
	byName := map[string]Entry{}
	for _, e := range all {
		byName[e.Name] = e
	}
	return func(name string) (Entry, bool) { e, is := byName[name]; return e, is }
}

func TestTree(t *testing.T) {
	all := Tree(devices())
	at := find(all)
	for name, want := range map[string]string{
		"class/infiniband/urnic0/node_type":                    "4: RNIC",
		"class/infiniband/mlx5_0/node_type":                    "1: CA",
		"class/infiniband/urnic0/node_guid":                    "0200:abff:fe00:0009",
		"class/infiniband/urnic0/sys_image_guid":               "0200:abff:fe00:0009",
		"class/infiniband/urnic0/fw_ver":                       "v1",
		"class/infiniband/urnic0/hca_type":                     "urnic",
		"class/infiniband/urnic0/board_id":                     "urnic",
		"class/infiniband/urnic0/ports/1/state":                "4: ACTIVE",
		"class/infiniband/urnic0/ports/1/phys_state":           "5: LinkUp",
		"class/infiniband/urnic0/ports/1/rate":                 "40 Gb/sec (4X QDR)",
		"class/infiniband/urnic0/ports/1/lid":                  "0x0",
		"class/infiniband/urnic0/ports/1/link_layer":           "Ethernet",
		"class/infiniband/urnic0/ports/1/pkeys/0":              "0xffff",
		"class/infiniband/urnic0/ports/1/gids/0":               "0000:0000:0000:0000:0000:ffff:7f00:0001",
		"class/infiniband/urnic0/ports/1/gids/1":               "fe80:0000:0000:0000:0000:0000:0000:0001",
		"class/infiniband/urnic0/ports/1/gid_attrs/types/1":    "IB/RoCE v1",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/types/0":    "RoCE v2",
		"class/infiniband/urnic0/ports/1/gid_attrs/ndevs/1":    "eth0",
		"class/infiniband/urnic0/ports/2/gids/0":               "0000:0000:0000:0000:0000:ffff:7f00:0001",
		"class/infiniband/urnic0/ports/2/counters/link_downed": "0",
		"class/infiniband/urnic0/ports/1/hw_counters/lifespan": "10",
		"class/infiniband_verbs/uverbs0/ibdev":                 "urnic0",
		"class/infiniband_verbs/uverbs1/ibdev":                 "mlx5_0",
		"class/infiniband_verbs/uverbs1/dev":                   "231:193",
		"class/infiniband_verbs/uverbs0/abi_version":           "1",
		"class/infiniband_verbs/abi_version":                   "6",
	} {
		if e, is := at(name); !is || e.Data != want+"\n" {
			t.Errorf("%s has %q; want %q", name, e.Data, want)
		}
	}
	for _, name := range []string{
		"class/net/eth0/device/infiniband/urnic0", "class/net/eth0/device/infiniband/mlx5_0", "class/net/lo/device/infiniband/urnic0",
		"dev/infiniband/uverbs0", "dev/infiniband/uverbs1", "dev/infiniband/rdma_cm",
	} {
		if _, is := at(name); !is {
			t.Errorf("there is no %s", name)
		}
	}
	if _, is := at("class/net/lo/device/infiniband/mlx5_0"); is {
		t.Error("mlx5_0 has no address of lo")
	}
}

// A tree can be written: its names are those of files, once each, and none is a directory of
// another. Links that stay in the tree lead to something.
func TestTreeIsConsistent(t *testing.T) {
	all := Tree(devices())
	dirs := map[string]bool{}
	for _, e := range all {
		for d := path.Dir(e.Name); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	at := find(all)
	for i, e := range all {
		if !fs.ValidPath(e.Name) || dirs[e.Name] || i > 0 && all[i-1].Name >= e.Name {
			t.Errorf("%d: %q", i, e.Name)
		}
		if (e.Link == "") == (e.Data == "") {
			t.Errorf("%s is no file and no link, or both", e.Name)
		}
		if e.Link == "" || strings.HasPrefix(e.Link, "/sys/class/net/") {
			continue
		}
		to := path.Join(path.Dir(e.Name), e.Link)
		if _, file := at(to); !file && !dirs[to] {
			t.Errorf("%s leads to %s, which is not there", e.Name, to)
		}
	}
	if none := Tree(nil); !slices.ContainsFunc(none, func(e Entry) bool { return e.Name == "class/infiniband_verbs/abi_version" }) {
		t.Errorf("%v", none)
	}
}
