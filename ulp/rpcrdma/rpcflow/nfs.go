package rpcflow

import (
	"fmt"
	"hash/crc32"
	"strings"

	"urnic/ulp/oncrpc/xdr"
)

// Bounds of what is read of NFS (RFC 1813 §2.4, RFC 8881).
const (
	maxHandle = 128
	maxName   = 4096
	maxBitmap = 8
)

// The procedures of NFSv3 whose arguments or results are shown (RFC 1813 §3.3).
const (
	nfs3Lookup      = 3
	nfs3Access      = 4
	nfs3ReadLink    = 5
	nfs3Read        = 6
	nfs3Write       = 7
	nfs3Create      = 8
	nfs3MkDir       = 9
	nfs3SymLink     = 10
	nfs3MkNod       = 11
	nfs3Remove      = 12
	nfs3RmDir       = 13
	nfs3Rename      = 14
	nfs3Link        = 15
	nfs3ReadDir     = 16
	nfs3ReadDirPlus = 17
	nfs3Commit      = 21
)

// stableNames are those of RFC 1813 §3.3.7.
var stableNames = [...]string{"UNSTABLE", "DATA_SYNC", "FILE_SYNC"}

func stable(n uint32) string {
	if int64(n) < int64(len(stableNames)) {
		return stableNames[n]
	}
	return fmt.Sprintf("stable=%d", n)
}

// handle shows a file handle by its CRC-32, as other dissectors do.
func handle(d *xdr.Decoder) string {
	return fmt.Sprintf("fh=%08x", crc32.ChecksumIEEE(d.Opaque(maxHandle)))
}

func quoted(d *xdr.Decoder) string { return fmt.Sprintf("%q", d.String(maxName)) }

// callDetail shows the arguments of a call that are worth a look; "" if it does not know
// them, or if they can't be decoded.
func callDetail(r *RPC, arguments []byte) (detail string) {
	d := xdr.NewDecoder(arguments)
	switch {
	case r.Program == programNFS && r.Version == 3 && r.Procedure > 0:
		detail = nfs3Call(r.Procedure, d)
	case r.Program == programNFS && r.Version == 4 && r.Procedure == 1:
		detail = compoundCall(d)
	case r.Program == programNFSACL && r.Version == 3 && r.Procedure > 0:
		detail = handle(d)
	case r.Program == programMount && (r.Procedure == 1 || r.Procedure == 3):
		detail = quoted(d)
	}
	if d.Err() != nil {
		return ""
	}
	return detail
}

// nfs3Call shows the arguments of a call of NFSv3.
func nfs3Call(procedure uint32, d *xdr.Decoder) string {
	words := []string{handle(d)}
	switch procedure {
	case nfs3Lookup, nfs3Create, nfs3MkDir, nfs3SymLink, nfs3MkNod, nfs3Remove, nfs3RmDir:
		words = append(words, quoted(d))
	case nfs3Access:
		words = append(words, fmt.Sprintf("access=%#x", d.Uint32()))
	case nfs3Read, nfs3Commit:
		words = append(words, fmt.Sprintf("offset=%d count=%d", d.Uint64(), d.Uint32()))
	case nfs3Write:
		words = append(words, fmt.Sprintf("offset=%d count=%d %s", d.Uint64(), d.Uint32(), stable(d.Uint32())))
	case nfs3Rename:
		words = append(words, quoted(d), "to", handle(d), quoted(d))
	case nfs3Link:
		words = append(words, "to", handle(d), quoted(d))
	case nfs3ReadDir:
		words = append(words, fmt.Sprintf("cookie=%d verifier=%x count=%d", d.Uint64(), d.Fixed(8), d.Uint32()))
	case nfs3ReadDirPlus:
		words = append(words, fmt.Sprintf("cookie=%d verifier=%x dircount=%d maxcount=%d", d.Uint64(), d.Fixed(8), d.Uint32(), d.Uint32()))
	}
	return strings.Join(words, " ")
}

// statusNames are those of RFC 1813 §2.6 and RFC 8881 §15 that are frequent.
var statusNames = map[uint32]string{
	0: "OK", 1: "PERM", 2: "NOENT", 5: "IO", 6: "NXIO", 13: "ACCES", 17: "EXIST", 18: "XDEV", 19: "NODEV", 20: "NOTDIR",
	21: "ISDIR", 22: "INVAL", 27: "FBIG", 28: "NOSPC", 30: "ROFS", 31: "MLINK", 63: "NAMETOOLONG", 66: "NOTEMPTY", 69: "DQUOT",
	70: "STALE", 71: "REMOTE", 10001: "BADHANDLE", 10002: "NOT_SYNC", 10003: "BAD_COOKIE", 10004: "NOTSUPP", 10005: "TOOSMALL",
	10006: "SERVERFAULT", 10007: "BADTYPE", 10008: "JUKEBOX",
}

func statusName(n uint32) string {
	if s, ok := statusNames[n]; ok {
		return s
	}
	return fmt.Sprintf("status %d", n)
}

// replyDetail shows what is worth a look in the results of a call.
func replyDetail(r *RPC, results []byte) (detail string) {
	d := xdr.NewDecoder(results)
	switch {
	case r.Procedure == 0:
		return ""
	case r.Program == programNFS && r.Version == 3:
		detail = nfs3Reply(r.Procedure, d)
	case r.Program == programNFS && r.Version == 4:
		detail = statusName(d.Uint32())
	case r.Program == programNFS && r.Version == 2, r.Program == programNFSACL, r.Program == programMount && r.Procedure == 1:
		detail = statusName(d.Uint32())
	}
	if d.Err() != nil {
		return ""
	}
	return detail
}

// Bytes of parts of results (RFC 1813 §2.6).
const (
	attrLen = 84 // fattr3
	wccLen  = 24 // wcc_attr
)

// nfs3Reply shows the results of a call of NFSv3.
func nfs3Reply(procedure uint32, d *xdr.Decoder) string {
	status := d.Uint32()
	detail := statusName(status)
	if status != 0 {
		return detail
	}
	attributes := func(n int) {
		if d.Bool() {
			d.Fixed(n)
		}
	}
	switch procedure {
	case nfs3Lookup:
		detail += " " + handle(d)
	case nfs3ReadLink:
		attributes(attrLen)
		detail += " " + quoted(d)
	case nfs3Read:
		attributes(attrLen)
		detail += fmt.Sprintf(" count=%d eof=%t", d.Uint32(), d.Bool())
	case nfs3Write:
		attributes(wccLen)
		attributes(attrLen)
		detail += fmt.Sprintf(" count=%d %s", d.Uint32(), stable(d.Uint32()))
	}
	return detail
}

// resultPlace returns where in a reduced reply the next item belongs that was moved: right
// behind the word with its length. The bindings of NFS (RFC 8267 §2, §5.2) know which item
// it is: the data of READ and READLINK, which come last but in NFSv4.
func (r *RPC) resultPlace(s *stream) (int, bool) {
	n := len(s.octets)
	if r.Program != programNFS || s.thin || n < 8 || len(s.items) > 0 && r.Version != 4 {
		return 0, false
	}
	switch {
	case r.Version == 2 && (r.Procedure == 5 || r.Procedure == 6), r.Version == 3 && (r.Procedure == nfs3ReadLink || r.Procedure == nfs3Read):
		return n, true
	case r.Version == 4 && r.Procedure == 1:
		return compoundPlace(s)
	}
	return 0, false
}
