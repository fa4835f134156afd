// Package ubik requests and reports the state of a replicated AFS database: the part of
// the Ubik interface that udebug uses, and the codes of its errors.
//
// A database has several servers, of which they elect one as the sync site: only that one
// accepts changes. A server without an elected sync site aborts calls with [ErrNoQuorum],
// and one that is not the sync site aborts changes with [ErrNotSyncSite].
//
// [NewVoteMux] serves a database with one server, which is always the sync site. Elections
// and replication are not supported.
package ubik
