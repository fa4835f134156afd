//go:build unix && !linux

package server

import "os"

// anonymous returns a file without a name.
func anonymous() (*os.File, error) {
	f, err := os.CreateTemp("", "urnic-conformance-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close() // err says why
		return nil, err
	}
	return f, nil
}
