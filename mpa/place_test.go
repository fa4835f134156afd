package mpa

import "errors"

// each makes a place function of one that takes every ULPDU.
func each(f func(ulpdu []byte, order uint64)) func([]byte, uint64) error {
	return func(u []byte, order uint64) error {
		f(u, order)
		return nil
	}
}

// ignore takes every ULPDU, and does nothing with it.
func ignore([]byte, uint64) error { return nil }

var errNotNow = errors.New("not now")

// refuse takes no ULPDU.
func refuse([]byte, uint64) error { return errNotNow }

// when makes a place function of one that takes a ULPDU only while open says so.
func when(open *bool, f func(ulpdu []byte, order uint64)) func([]byte, uint64) error {
	return func(u []byte, order uint64) error {
		if !*open {
			return errNotNow
		}
		f(u, order)
		return nil
	}
}
