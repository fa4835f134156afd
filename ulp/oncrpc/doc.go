// Package oncrpc is version 2 of the Open Network Computing remote procedure call
// protocol, RFC 5531: messages, credentials, and records on a byte stream.
//
// A Call or a Reply is encoded in front of the procedure's own data, into the same
// stream of package xdr:
//
//	var e xdr.Encoder
//	(&oncrpc.Call{XID: 7, Program: 100003, Version: 3, Procedure: 6}).Encode(&e)
//	args.Encode(&e)
//	err := oncrpc.WriteRecord(conn, &e)
//
// and decoded in front of it:
//
//	d := xdr.NewDecoder(record)
//	var r oncrpc.Reply
//	if err := r.Decode(d); err != nil {
//		return err // no reply at all
//	}
//	if r.Err != nil {
//		return r.Err // the server did not carry it out: an *AcceptedError or a *RejectedError
//	}
//	results.Decode(d)
//
// WriteRecord and RecordReader are for TCP. Package ulp/rpcrdma moves the same streams by
// RDMA.
package oncrpc
