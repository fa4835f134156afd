// Package vol is AFS's volume interface: the volumes on a server's partitions, and transactions
// that create, change, dump and restore them.
//
// A partition is a number from 0 ("/vicepa") on. Anyone may list volumes. What changes or reads
// a volume needs a [Transaction], of which a volume has one at a time:
//
//	t, err := volumes.Begin(ctx, id, partition, vol.ReadOnlyAccess)
//	n, err := t.Dump(ctx, 0, w)
//	err = t.End(ctx)
//
// A dump is the content of a volume as a stream of any length. This package does not look into
// it.
//
// [NewMux] serves a [Store], which holds volumes as the dumps that they were restored from. It
// does not forward dumps to other servers, and makes no incremental ones.
package vol
