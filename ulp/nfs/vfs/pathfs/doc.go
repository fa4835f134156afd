// Package pathfs makes a vfs.FS of what names its files by paths only: it keeps a table of
// the files that were looked up, so that a handle follows its file when that is renamed.
//
// The table lives as long as the FS, and holds each file that a client has seen for as long
// as it exists. Changes of names wait for all other calls, because a path names another
// file behind them.
package pathfs
