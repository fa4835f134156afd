// Package afs has what the interfaces of AFS-3 share: ports and service IDs, UUIDs, times,
// and the error codes that every server may send.
//
// Each interface is a package with its types, a client, and a small server:
//
//	pt    protection: users and groups            port 7002, service 73
//	vl    volume location                         port 7003, service 52
//	vol   volumes: transactions, dump, restore    port 7005, service 4
//	bos   the overseer of server processes        port 7007, service 1
//	fs    files                                   port 7000, service 1
//	cb    callbacks to a client of files          port 7001, service 1
//	ubik  state of a replicated database          ports 7002 and 7003, service 50
//
// Package dir is the format of directories, which file servers send as files. Package afsd has
// all servers of a cell in one process.
//
// A client is made of a function that begins calls; a server is a *rpc.Mux for an endpoint
// to serve:
//
//	users := pt.NewClient(rpc.Over(conn.Begin))
//	ids, err := users.NamesToIDs(ctx, []string{"alice"})
//
//	mux := pt.NewMux(pt.NewDB(), pt.Config{})
//
// The servers hold everything in memory. They answer what OpenAFS's tools (pts, vos, bos,
// udebug, xstat_fs_test, xstat_cm_test) and Linux's kAFS ask of them, with the codes that
// OpenAFS's servers use. They do not replicate, and forget when they end.
package afs
