//go:build linux

package dropin

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestParseDevices(t *testing.T) {
	a := netip.MustParseAddr
	for value, want := range map[string]wantedDevices{
		"1":                   {count: 1},
		"16":                  {count: 16},
		"192.0.2.1":           {ports: [][]netip.Addr{{a("192.0.2.1")}}},
		"192.0.2.1,::1":       {ports: [][]netip.Addr{{a("192.0.2.1")}, {a("::1")}}},
		"127.0.0.1+127.0.0.2": {ports: [][]netip.Addr{{a("127.0.0.1"), a("127.0.0.2")}}},
		"::ffff:192.0.2.1":    {ports: [][]netip.Addr{{a("192.0.2.1")}}},
	} {
		if got, err := parseDevices(value); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v; want %v", value, got, err, want)
		}
	}
	many := make([]string, maxDevices+1)
	for i := range many {
		many[i] = fmt.Sprintf("127.0.0.%d", i+1)
	}
	for _, bad := range []string{
		"0", "-1", "17", "x", "192.0.2.1,", ",192.0.2.1", "192.0.2.1+", "192.0.2.1,192.0.2.1", "192.0.2.1+192.0.2.1", "0.0.0.0", "::", "224.0.0.1",
		"fe80::1%lo", "192.0.2.1 192.0.2.2", strings.Join(many, ","), strings.Join(many, "+"),
	} {
		if got, err := parseDevices(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, got)
		}
	}
}

// FuzzParseDevices wants that what is accepted can be said again, and keeps to its bounds.
func FuzzParseDevices(f *testing.F) {
	for _, s := range []string{"2", "192.0.2.1,192.0.2.2+::1", "::1%lo", "+,", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		w, err := parseDevices(value)
		if err != nil {
			return
		}
		if w.count != 0 {
			if w.ports != nil || w.count > maxDevices {
				t.Fatalf("%q: %v", value, w)
			}
			return
		}
		var devices []string
		for _, ports := range w.ports {
			var texts []string
			for _, a := range ports {
				texts = append(texts, a.String())
			}
			devices = append(devices, strings.Join(texts, "+"))
			if len(ports) > maxPorts {
				t.Fatalf("%q: %d ports", value, len(ports))
			}
		}
		again, err := parseDevices(strings.Join(devices, ","))
		if err != nil || !reflect.DeepEqual(w, again) || len(w.ports) > maxDevices {
			t.Fatalf("%q: %v; said again: %v, %v", value, w, again, err)
		}
	})
}

// hostOf returns the GID table of a host with some addresses.
func hostOf(addresses ...string) (gids []GID) {
	for i, a := range addresses {
		gids = append(gids, GID{Raw: netip.MustParseAddr(a).As16(), IfIndex: uint32(i + 1)})
	}
	return gids
}

func TestDevicesOfAHost(t *testing.T) {
	host := hostOf("192.0.2.1", "2001:db8::1", "fe80::1", "127.0.0.1")
	for value, want := range map[string]string{
		"":                  "mlx5_3[invalid IP] ",
		"URNIC_DEVICES=1":   "mlx5_3[invalid IP] ",
		"URNIC_DEVICES=2":   "mlx5_3[192.0.2.1] mlx5_4[2001:db8::1] ",
		"URNIC_DEVICES=3":   "mlx5_3[192.0.2.1] mlx5_4[2001:db8::1] mlx5_5[127.0.0.1] ",
		"URNIC_DEVICES=::1": "mlx5_3[::1] ",
		"URNIC_DEVICES=127.0.0.9,192.0.2.1+2001:db8::1": "mlx5_3[127.0.0.9] mlx5_4[192.0.2.1 2001:db8::1] ",
	} {
		s, err := parseSettings([]string{"URNIC_DEVICE=mlx5_3", value})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.devices(host)
		var text strings.Builder
		for _, d := range got {
			fmt.Fprint(&text, d.name, d.ports, " ")
		}
		if err != nil || text.String() != want {
			t.Errorf("%s: %s, %v; want %s", value, &text, err, want)
		}
	}
	for value, want := range map[string]string{
		"URNIC_DEVICES=4":                    "4 devices, and this host has 3 addresses",
		"URNIC_DEVICES=192.0.2.1,192.0.2.99": "192.0.2.99 is no address of this host",
	} {
		s, err := parseSettings([]string{value})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.devices(host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", value, err, want)
		}
	}
	long := strings.Repeat("x", maxDeviceName)
	s, err := parseSettings([]string{"URNIC_DEVICE=" + long, "URNIC_DEVICES=2"})
	if err == nil {
		_, err = s.devices(host)
	}
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
}

func TestNumberedNames(t *testing.T) {
	for name, want := range map[string]string{"urnic0": "urnic1", "mlx5_9": "mlx5_10", "siw": "siw1", "a99999999999999999999": "a999999999999999999991"} {
		if got := numbered(name, 1); got != want {
			t.Errorf("after %s comes %s; want %s", name, got, want)
		}
	}
}

// Each device has a name, a GUID and GID tables of its own.
func TestSeveralDevices(t *testing.T) {
	l := newLab(t, "URNIC_DEVICES=127.0.0.1,127.0.0.2+::1")
	names, guids := "", map[[8]byte]bool{}
	for i, ports := range []uint32{1, 2} {
		var d DeviceAttr
		l.must("device", l.Device(uint32(i), &d))
		names += strings.TrimRight(string(d.Name[:]), "\x00") + " "
		guids[d.GUID] = true
		if d.Ports != ports || d.Bound != 1 || d.GIDs != 1 {
			t.Errorf("device %d: %d ports, bound %d, %d GIDs", i, d.Ports, d.Bound, d.GIDs)
		}
		ctx, _, bad := l.ContextOpen(uint32(i), 1)
		l.must("open", bad)
		l.must("close", l.ContextClose(ctx))
	}
	if names != "urnic0 urnic1 " || len(guids) != 2 {
		t.Errorf("%s with GUIDs %v", names, guids)
	}
	for where, want := range map[[3]uint32]string{{0, 1, 0}: "127.0.0.1", {1, 1, 0}: "127.0.0.2", {1, 2, 0}: "::1"} {
		var g GID
		l.must("GID", l.GID(where[0], where[1], where[2], &g))
		if g.addr().String() != want || g.IfIndex == 0 {
			t.Errorf("GID at %v is %v of interface %d; want %s", where, g.addr(), g.IfIndex, want)
		}
	}
	var g GID
	for _, beyond := range [][3]uint32{{0, 1, 1}, {0, 2, 0}, {1, 3, 0}, {2, 1, 0}, {0, 0, 0}, {1 << 31, 1 << 31, 1 << 31}} {
		l.want("beyond", l.GID(beyond[0], beyond[1], beyond[2], &g), syscall.EINVAL)
	}
	var d DeviceAttr
	l.want("third device", l.Device(2, &d), syscall.ENODEV)
	_, _, bad := l.ContextOpen(2, 1)
	l.want("context of the third device", bad, syscall.ENODEV)
}

// What sysfs shows is what the devices say.
func TestViewIsThatOfTheDevices(t *testing.T) {
	settings := []string{"URNIC_DEVICE=mlx5_0", "URNIC_DEVICES=127.0.0.1,127.0.0.2+::1", "URNIC_TRANSPORT=ethernet"}
	view, err := View(settings)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, settings...)
	for i, seen := range view {
		var d DeviceAttr
		l.must("device", l.Device(uint32(i), &d))
		if name := strings.TrimRight(string(d.Name[:]), "\x00"); seen.Name != name || seen.GUID != d.GUID || seen.IWARP || int(d.Ports) != len(seen.Ports) {
			t.Errorf("%+v; the device is %s, %x", seen, name, d.GUID)
		}
		for p, port := range seen.Ports {
			for index, g := range port.GIDs {
				var gid GID
				l.must("GID", l.GID(uint32(i), uint32(p+1), uint32(index), &gid))
				if gid.Raw != g.Raw || g.NetDev != "lo" {
					t.Errorf("%+v; the device has %+v", g, gid)
				}
			}
			if len(port.GIDs) != 1 {
				t.Errorf("%d GIDs", len(port.GIDs))
			}
		}
	}
	if len(view) != 2 {
		t.Errorf("%d devices", len(view))
	}
	if _, err := View([]string{"URNIC_TRANSPORT=ib"}); err == nil {
		t.Error("there is a view with settings that are wrong")
	}
	all, err := View(nil)
	if err != nil || len(all) != 1 || len(all[0].Ports) != 1 || len(all[0].Ports[0].GIDs) != len(hostGIDs()) || !all[0].IWARP {
		t.Errorf("%+v, %v", all, err)
	}
}
