package rpcflow

import (
	"strings"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// Operations of NFSv4 that are passed over in a COMPOUND (RFC 8881 §18).
const (
	op4Access    = 3
	op4Close     = 4
	op4Commit    = 5
	op4GetAttr   = 9
	op4GetFH     = 10
	op4Lookup    = 15
	op4PutFH     = 22
	op4PutRootFH = 24
	op4Read      = 25
	op4ReadDir   = 26
	op4ReadLink  = 27
	op4Remove    = 28
	op4Rename    = 29
	op4RestoreFH = 31
	op4SaveFH    = 32
	op4SetAttr   = 34
	op4Write     = 38
	op4Sequence  = 53
)

var operationNames = [...]string{
	3: "ACCESS", "CLOSE", "COMMIT", "CREATE", "DELEGPURGE", "DELEGRETURN", "GETATTR", "GETFH", "LINK", "LOCK", "LOCKT", "LOCKU",
	"LOOKUP", "LOOKUPP", "NVERIFY", "OPEN", "OPENATTR", "OPEN_CONFIRM", "OPEN_DOWNGRADE", "PUTFH", "PUTPUBFH", "PUTROOTFH", "READ",
	"READDIR", "READLINK", "REMOVE", "RENAME", "RENEW", "RESTOREFH", "SAVEFH", "SECINFO", "SETATTR", "SETCLIENTID",
	"SETCLIENTID_CONFIRM", "VERIFY", "WRITE", "RELEASE_LOCKOWNER", "BACKCHANNEL_CTL", "BIND_CONN_TO_SESSION", "EXCHANGE_ID",
	"CREATE_SESSION", "DESTROY_SESSION", "FREE_STATEID", "GET_DIR_DELEGATION", "GETDEVICEINFO", "GETDEVICELIST", "LAYOUTCOMMIT",
	"LAYOUTGET", "LAYOUTRETURN", "SECINFO_NO_NAME", "SEQUENCE", "SET_SSV", "TEST_STATEID", "WANT_DELEGATION", "DESTROY_CLIENTID",
	"RECLAIM_COMPLETE",
}

const (
	maxOperations = 64
	stateIDLen    = 16
	sessionIDLen  = 16
)

// compoundCall names the operations of a COMPOUND, up to the first whose arguments it does
// not pass over.
func compoundCall(d *xdr.Decoder) string {
	d.Opaque(maxName) // the tag
	d.Uint32()        // the minor version
	n := d.Uint32()
	var names []string
	for range min(n, maxOperations) {
		op := d.Uint32()
		if d.Err() != nil {
			return ""
		}
		if uint64(op) >= uint64(len(operationNames)) || operationNames[op] == "" {
			return strings.Join(append(names, "..."), " ")
		}
		names = append(names, operationNames[op])
		if uint32(len(names)) == n {
			break
		}
		if !passArguments(op, d) {
			return strings.Join(append(names, "..."), " ")
		}
	}
	return strings.Join(names, " ")
}

func passBitmap(d *xdr.Decoder) {
	for range d.Count(maxBitmap, 4) {
		d.Uint32()
	}
}

// passArguments passes over the arguments of an operation, and reports whether it knows
// them.
func passArguments(op uint32, d *xdr.Decoder) bool {
	switch op {
	case op4GetFH, op4PutRootFH, op4ReadLink, op4RestoreFH, op4SaveFH:
	case op4Access:
		d.Uint32()
	case op4Close:
		d.Uint32()
		d.Fixed(stateIDLen)
	case op4Commit:
		d.Uint64()
		d.Uint32()
	case op4GetAttr:
		passBitmap(d)
	case op4Lookup, op4PutFH, op4Remove:
		d.Opaque(maxName)
	case op4Read:
		d.Fixed(stateIDLen)
		d.Uint64()
		d.Uint32()
	case op4ReadDir:
		d.Uint64()
		d.Fixed(8)
		d.Uint64()
		passBitmap(d)
	case op4Rename:
		d.Opaque(maxName)
		d.Opaque(maxName)
	case op4SetAttr:
		d.Fixed(stateIDLen)
		passBitmap(d)
		d.Opaque(1 << 20)
	case op4Write:
		d.Fixed(stateIDLen)
		d.Uint64()
		d.Uint32()
		d.Opaque(1 << 30)
	case op4Sequence:
		d.Fixed(sessionIDLen + 16)
	default:
		return false
	}
	return d.Err() == nil
}

// compoundPlace finds the next READ or READLINK in the results of a COMPOUND whose data
// were moved, and returns where they belong.
func compoundPlace(s *stream) (int, bool) {
	d := xdr.NewDecoder(s.octets)
	var m oncrpc.Reply
	if m.Decode(d) != nil || m.Err != nil {
		return 0, false
	}
	d.Uint32() // the status
	d.Opaque(maxName)
	for range min(d.Uint32(), maxOperations) {
		op, status := d.Uint32(), d.Uint32()
		if d.Err() != nil || status != 0 {
			return 0, false
		}
		switch op {
		case op4PutFH, op4PutRootFH, op4SaveFH, op4RestoreFH:
		case op4Access:
			d.Uint64()
		case op4GetAttr:
			passBitmap(d)
			d.Opaque(1 << 20)
		case op4GetFH:
			d.Opaque(maxHandle)
		case op4Lookup:
		case op4Sequence:
			d.Fixed(sessionIDLen + 20)
		case op4Read, op4ReadLink:
			if op == op4Read {
				d.Bool()
			}
			n := d.Uint32()
			place := len(s.octets) - d.Left()
			if d.Err() != nil {
				return 0, false
			}
			if !s.holds(place) {
				return place, true
			}
			d.Fixed(int(min(n, uint32(d.Left()))))
		default:
			return 0, false
		}
	}
	return 0, false
}

// holds reports whether an item was put in already at a place.
func (s *stream) holds(place int) bool {
	for _, i := range s.items {
		if i.at == place {
			return true
		}
	}
	return false
}
