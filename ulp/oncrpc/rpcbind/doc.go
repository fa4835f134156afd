// Package rpcbind finds programs of ONC RPC: versions 3 and 4 of RPCBIND and version 2,
// the port mapper, of RFC 1833.
//
// A Client asks the service of a host, or registers programs with the one of its own:
//
//	c := rpcbind.NewClient(oncrpc.NewClient(oncrpc.OverTCP(net.JoinHostPort(host, rpcbind.Port), oncrpc.TCPConfig{}), oncrpc.ClientConfig{Dials: 1}))
//	defer c.Close()
//	port, err := c.FindPort(ctx, 100005, 3, rpcbind.TCP)
//
// A Table is such a service itself, for hosts that have none:
//
//	table := rpcbind.NewTable(0)
//	err := table.Add(rpcbind.Mapping{Program: 100003, Version: 3, Netid: rpcbind.TCP, Addr: rpcbind.FormatAddr(addr)})
//	err = server.Register(table.Program())
//
// It makes no calls for others (CALLIT, BCAST and INDIRECT), which serve to hide who
// calls, and to make replies larger than calls; it keeps no statistics (GETSTAT), and has
// no addresses in forms of one transport only (UADDR2TADDR, TADDR2UADDR).
package rpcbind
