// Package host has no code. Below it is what the stack stands on, which knows nothing of RDMA:
//
//	sockio     sockets that are read and written without waiting
//	udp        UDP sockets whose system calls carry many datagrams
//	listen     listening at an address in its family alone
//	peeruid    the user who owns the other end of a connection on this host
//	pollfd     descriptors that a program can poll for events
//	memcheck   whether memory that a bare address names may be used
//	memfault   reading and writing memory that may be gone
//	crc32c     the checksum of MPA
//	printable  text of strangers, fit for a terminal
//	plural     counts with their nouns
package host
