package sysfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Device is an RDMA device.
type Device struct {
	Name    string // such as urnic0: a name of a file
	Version string // of the firmware, human-readable
	GUID    [8]byte
	IWARP   bool // it is an RNIC, and else a channel adapter with Ethernet ports
	Ports   []Port
}

// A Port is a port of a device. Its number is its place in Device.Ports, from 1 on.
type Port struct{ GIDs []GID }

// A GID is an entry of a port's GID table.
type GID struct {
	Raw    [16]byte
	NetDev string // the interface that has the address: a name of a file
}

// An Entry is a file, or a symbolic link. Directories follow from names.
type Entry struct {
	Name string // from the root of the tree, as io/fs has names
	Data string // of a file
	Link string // what a link points to, or "" for a file

	Counter bool // the file is a number that grows
}

// Numbers of the kernel that stand in its files.
const (
	verbsABI   = "6" // IB_USER_VERBS_ABI_VERSION
	deviceABI  = "1" // of the driver
	madABI     = "5" // IB_USER_MAD_ABI_VERSION
	verbsMajor = 231 // of character devices of verbs
	verbsMinor = 192 // that of uverbs0
	cmNode     = "rdma_cm"
)

// Values that all devices have.
const (
	hcaType = "urnic"
	boardID = "urnic"
	// There is no link: what Linux siw says, which has none either.
	rate = "40 Gb/sec (4X QDR)"
	// CM, and GIDs that are IP addresses (IB_PORT_CM_SUP, IB_PORT_IP_BASED_GIDS).
	capMask = "0x04010000"
	pkey    = "0xffff"
)

// Tree returns the files of devices, sorted by name. Devices must have different names.
func Tree(devices []Device) []Entry {
	var t tree
	t.file("class/infiniband_verbs/abi_version", verbsABI)
	t.file("class/infiniband_mad/abi_version", madABI)
	t.file("dev/infiniband/"+cmNode, "")
	for i := range devices {
		t.device(&devices[i], i)
	}
	slices.SortFunc(t.entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(t.entries, func(a, b Entry) bool { return a.Name == b.Name })
}

type tree struct{ entries []Entry }

// file adds a file of one line.
func (t *tree) file(name, line string) {
	t.entries = append(t.entries, Entry{Name: name, Data: line + "\n"})
}

func (t *tree) link(name, to string) {
	t.entries = append(t.entries, Entry{Name: name, Link: to})
}

func (t *tree) device(d *Device, index int) {
	dir, verbs := "class/infiniband/"+d.Name, "uverbs"+strconv.Itoa(index)
	guid := PrintGUID(d.GUID)
	nodeType := "1: CA"
	if d.IWARP {
		nodeType = "4: RNIC"
	}
	for name, line := range map[string]string{
		"node_type": nodeType, "node_guid": guid, "sys_image_guid": guid, "node_desc": d.Name,
		"fw_ver": d.Version, "hca_type": hcaType, "hw_rev": "0", "board_id": boardID,
		"device/numa_node": "-1", // it is at none
	} {
		t.file(dir+"/"+name, line)
	}
	t.link(dir+"/device/infiniband/"+d.Name, "../../../"+d.Name)
	t.link(dir+"/device/infiniband_verbs/"+verbs, "../../../../infiniband_verbs/"+verbs)
	for i := range d.Ports {
		t.port(d, i+1)
	}

	dir = "class/infiniband_verbs/" + verbs
	t.file(dir+"/ibdev", d.Name)
	t.file(dir+"/abi_version", deviceABI)
	t.file(dir+"/dev", fmt.Sprintf("%d:%d", verbsMajor, verbsMinor+index))
	t.link(dir+"/device", "../../infiniband/"+d.Name+"/device")
	t.file("dev/infiniband/"+verbs, "")
}

func (t *tree) port(d *Device, number int) {
	dir := "class/infiniband/" + d.Name + "/ports/" + strconv.Itoa(number)
	state, physical := "4: ACTIVE", "5: LinkUp"
	if len(d.Ports[number-1].GIDs) == 0 { // no interface is up that has its address
		state, physical = "1: DOWN", "3: Disabled"
	}
	for name, line := range map[string]string{
		"state": state, "phys_state": physical, "rate": rate, "link_layer": "Ethernet",
		"lid": "0x0", "lid_mask_count": "0", "sm_lid": "0x0", "sm_sl": "0", "cap_mask": capMask,
		"pkeys/0": pkey, "hw_counters/lifespan": "10",
	} {
		t.file(dir+"/"+name, line)
	}
	for _, name := range uncounted {
		t.file(dir+"/counters/"+name, "0")
	}
	for c := range Counters {
		t.entries = append(t.entries, Entry{Name: CounterFile(d.Name, number, c), Data: "0\n", Counter: true})
	}
	gidType := "RoCE v2"
	if d.IWARP {
		gidType = "IB/RoCE v1" // there is none for iWARP: IB_GID_TYPE_IB
	}
	for i, g := range d.Ports[number-1].GIDs {
		index := strconv.Itoa(i)
		t.file(dir+"/gids/"+index, PrintGID(g.Raw))
		t.file(dir+"/gid_attrs/types/"+index, gidType)
		t.file(dir+"/gid_attrs/ndevs/"+index, g.NetDev)
		t.netdev(d, g.NetDev)
	}
}

// netdev lets a device and one of its interfaces know each other, as those of a card do.
func (t *tree) netdev(d *Device, name string) {
	t.link("class/infiniband/"+d.Name+"/device/net/"+name, "/sys/class/net/"+name)
	t.link("class/net/"+name+"/device/infiniband/"+d.Name, "../../../../infiniband/"+d.Name)
}

// PrintGUID prints a GUID as sysfs does: four groups of four digits.
func PrintGUID(g [8]byte) string {
	return fmt.Sprintf("%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7])
}

// PrintGID prints a GID as sysfs does: eight groups of four digits, none of them left out.
func PrintGID(raw [16]byte) string {
	var groups [8]string
	for i := range groups {
		groups[i] = fmt.Sprintf("%02x%02x", raw[2*i], raw[2*i+1])
	}
	return strings.Join(groups[:], ":")
}
