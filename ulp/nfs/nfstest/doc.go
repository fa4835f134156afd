// Package nfstest is a workload for NFS: what programs do with files, done through a
// client of package nfs, with what comes of it compared to what should.
//
//	nfstest.Run(t, nfstest.Mount{
//		Dial: func(ctx context.Context) (*nfs.Client, error) { return nfs.Dial(ctx, url, cfg) },
//	})
//
// It works in directories of its own and removes them. A server that can be killed and
// started again while clients continue has a Mount.Restart.
package nfstest
