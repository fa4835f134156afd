//go:build linux

package dropin

import (
	"strings"
	"testing"
)

func TestDeviceHasTheNameThatIsSet(t *testing.T) {
	long := strings.Repeat("x", maxDeviceName)
	for _, name := range []string{"mlx5_0", "rocep1s0f0", "a.b-c", long} {
		l := newLab(t, "URNIC_DEVICE="+name)
		var d DeviceAttr
		l.must("device", l.Device(0, &d))
		if got := strings.TrimRight(string(d.Name[:]), "\x00"); got != name {
			t.Errorf("the device is called %q; want %q", got, name)
		}
	}
	for _, bad := range []string{"a/b", "..", ".a", "-a", "a b", "a:1", "a,b", "ä", long + "x"} {
		if _, err := parseSettings([]string{"URNIC_DEVICE=" + bad}); err == nil || !strings.Contains(err.Error(), "URNIC_DEVICE") {
			t.Errorf("%q: %v; want an error", bad, err)
		}
	}
}
