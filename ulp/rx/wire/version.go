package wire

import "bytes"

// VersionLen is the length of the body of a version reply (draft §4).
const VersionLen = 65

// ParseVersion returns the string in the body of a version packet, up to the first zero
// byte. It aliases body.
func ParseVersion(body []byte) []byte {
	s, _, _ := bytes.Cut(body, []byte{0})
	return s
}

// AppendVersion appends the body of a version reply to b. A string of more than 64 bytes is
// cut: the last byte is zero.
func AppendVersion(b []byte, s string) []byte {
	var body [VersionLen]byte
	copy(body[:VersionLen-1], s)
	return append(b, body[:]...)
}

// VersionKeepalive reports whether a version packet with the header h only keeps the state
// of address translators and firewalls alive. Nobody answers it: it has no FlagClient, and
// a body of one zero byte.
func VersionKeepalive(h *Header, body []byte) bool {
	return h.Type == TypeVersion && !h.FromClient() && len(body) == 1 && body[0] == 0
}
