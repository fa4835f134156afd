// Package stag implements steering tags: the names under which memory is
// opened to local and remote access.
package stag
