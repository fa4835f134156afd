// Package latch is where the package rnic leaves what it does for the package door, which
// imports rnic, so that rnic can't import it.
package latch

var inside any

// Install leaves what rnic does for the door. It is called once, while rnic is initialized.
func Install(verbs any) { inside = verbs }

// Inside returns what Install was given. The door, which knows its type, is initialized after
// rnic.
func Inside() any { return inside }
