package dropin

// The device's name if none is set, and the most bytes of one: IB_DEVICE_NAME_MAX of
// Linux, with the NUL at its end.
const (
	defaultDevice = "urnic0"
	maxDeviceName = 63
)

// ValidDeviceName reports whether a device can have a name: it becomes that of a
// directory of sysfs, and programs write it into lists with commas and colons.
func ValidDeviceName(name string) bool {
	if name == "" || len(name) > maxDeviceName || name[0] == '.' || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
