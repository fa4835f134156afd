// Package sysfsdir writes trees of package sysfs into directories, adds to their counters, and removes them.
//
// A directory gets a tree as a whole, by rename(2): who reads there sees the tree that was, or
// the one that is. With it goes a file (Marker) that has the name and a hash of each other file. [Write] and
// [Remove] touch a directory only if all that is in it is as the marker says. So they
// destroy nothing that somebody else has put or changed there. Counters are numbers to which
// any process of the user adds ([Add]); they go on when the directory is written again.
package sysfsdir
