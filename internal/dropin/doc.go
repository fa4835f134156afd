// Package dropin is what programs written in C for libibverbs and librdmacm find
// behind those names: the objects of package rnic, as rdma-core's ABI wants them.
//
// Package main in cmd/liburnic exports it to C, one function for one function; the
// C half there presents the structs and symbols that programs are linked to. All
// here is plain Go, and is tested without C.
//
// An Engine is what one process has. Its objects are named by handles. Structs of
// the ABI (SendWR, WC, …) have rdma-core's layout, and are read and written where
// the program has them.
package dropin
