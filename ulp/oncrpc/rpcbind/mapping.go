package rpcbind

import (
	"fmt"

	"urnic/ulp/oncrpc/xdr"
)

// Program is the number of RPCBIND, and of the port mapper before it; Port is where it
// listens over TCP and UDP.
const (
	Program = 100000
	Port    = "111"
)

// The versions (RFC 1833 §2, §3).
const (
	versionPortmap = 2
	version3       = 3
	version4       = 4
)

// The procedures of versions 3 and 4 (RFC 1833 §2.1). Those of version 2 with the same
// meaning have the same numbers; 3 is GETPORT there (§3.1).
const (
	procSet         = 1
	procUnset       = 2
	procGetAddr     = 3
	procDump        = 4
	procGetTime     = 6
	procGetVersAddr = 9
	procGetAddrList = 11
)

// A Mapping says where a version of a program is (RFC 1833 §2.1, rpcb).
type Mapping struct {
	Program, Version uint32
	Netid            string
	Addr             string // universal; see FormatAddr
	Owner            string
}

func (m Mapping) String() string {
	return fmt.Sprintf("version %d of program %d over %s", m.Version, m.Program, m.Netid)
}

// Bounds of strings, in bytes. Others have none, which RFC 1833 does not demand.
const (
	maxNetid = 32
	maxOwner = 128
	// Addresses of transports that this package does not know may be longer.
	maxForeignAddr = 256
)

// maxMappings is how many mappings a list may have. There are two or three for each
// version of each program on a host.
const maxMappings = 8 << 10

// maxList is the length of the longest list of which a client reads, in bytes.
const maxList = 1 << 20

func (m *Mapping) encode(e *xdr.Encoder) {
	e.Uint32(m.Program)
	e.Uint32(m.Version)
	e.String(m.Netid)
	e.String(m.Addr)
	e.String(m.Owner)
}

func (m *Mapping) decode(d *xdr.Decoder) {
	*m = Mapping{Program: d.Uint32(), Version: d.Uint32(), Netid: d.String(maxNetid), Addr: d.String(maxForeignAddr), Owner: d.String(maxOwner)}
}

// An Entry is one of the addresses of a program (RFC 1833 §2.1, rpcb_entry).
type Entry struct {
	Addr      string // universal, as the caller can reach it
	Netid     string
	Semantics uint32 // 1 connectionless, 2 connections, 3 connections that end gracefully, 4 raw
	Family    string // of protocols: "inet"
	Protocol  string // "tcp"
}

const (
	connectionless = 1
	graceful       = 3
)

func (n *Entry) encode(e *xdr.Encoder) {
	e.String(n.Addr)
	e.String(n.Netid)
	e.Uint32(n.Semantics)
	e.String(n.Family)
	e.String(n.Protocol)
}

func (n *Entry) decode(d *xdr.Decoder) {
	*n = Entry{d.String(maxForeignAddr), d.String(maxNetid), d.Uint32(), d.String(maxNetid), d.String(maxNetid)}
}

// A PortMapping says where a version of a program is (RFC 1833 §3.1, mapping).
type PortMapping struct {
	Program, Version uint32
	Protocol         uint32 // ProtocolTCP or ProtocolUDP
	Port             uint32
}

// Protocols of version 2.
const (
	ProtocolTCP = 6
	ProtocolUDP = 17
)

func (m *PortMapping) encode(e *xdr.Encoder) {
	e.Uint32(m.Program)
	e.Uint32(m.Version)
	e.Uint32(m.Protocol)
	e.Uint32(m.Port)
}

func (m *PortMapping) decode(d *xdr.Decoder) {
	*m = PortMapping{d.Uint32(), d.Uint32(), d.Uint32(), d.Uint32()}
}

// item is an element of a list, each of which stands behind a word that says that there
// is one (RFC 4506 §4.19).
type item[T any] interface {
	*T
	encode(e *xdr.Encoder)
	decode(d *xdr.Decoder)
}

func encodeList[T any, P item[T]](e *xdr.Encoder, list []T) {
	for i := range list {
		e.Bool(true)
		P(&list[i]).encode(e)
	}
	e.Bool(false)
}

func decodeList[T any, P item[T]](d *xdr.Decoder) []T {
	var list []T
	for d.Bool() {
		if len(list) == maxMappings {
			d.Fail("a list of mappings", xdr.ErrLong)
			break
		}
		var v T
		P(&v).decode(d)
		list = append(list, v)
	}
	if d.Err() != nil {
		return nil
	}
	return list
}
