// Package nfsbench measures how fast an NFS server is, through a client of package
// ulp/nfs: long reads and writes, short reads at random, and calls that do nothing.
package nfsbench
