package vfs

import "strings"

// CheckName returns nil if name can be a file's in a directory: a single component of at
// most limit bytes. It returns ErrInvalid or ErrNameTooLong. What it lets pass can't lead
// out of the directory on any system whose separator is '/'.
func CheckName(name string, limit int) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return ErrInvalid
	}
	if len(name) > limit {
		return ErrNameTooLong
	}
	return nil
}

// Check returns ErrInvalid if s asks for what no file of type t can have: modes beyond
// the twelve bits of permissions, or a size of anything but a regular file.
func (s *SetAttr) Check(t Type) error {
	if s.Mode != nil && *s.Mode&^0o7777 != 0 || s.Size != nil && t != Regular {
		return ErrInvalid
	}
	return nil
}
