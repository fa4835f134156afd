// Package pt is AFS's protection interface: users, groups, and who belongs to which.
//
// Users have positive IDs and groups negative ones. The name of a group begins with its
// owner's ("alice:friends"), except those that administrators own ("system:authuser").
// Names are in lower case.
//
// A [Client] asks any protection server. [NewMux] serves a [DB], which is in memory.
package pt
