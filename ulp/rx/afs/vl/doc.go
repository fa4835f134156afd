// Package vl is AFS's volume location interface: on which file servers, and on which of
// their partitions, the volumes are.
//
// An [Entry] belongs to a read-write volume, and names its read-only and backup volumes,
// too. A [Site] is a place where one of them is. A file server is known by an address, or
// by a UUID once it has registered its addresses.
//
// The interface has grown: most operations exist for entries of 8 sites, for entries of 13
// sites (N), and for entries of 13 sites with UUIDs (U). A [Client] uses the N and U
// operations, as OpenAFS and Linux do. [NewMux] serves a [DB], which is in memory, by all.
package vl
