//go:build !unix

package pathfs

func errno(error) error { return nil }
