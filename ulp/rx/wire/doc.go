// Package wire encodes and decodes the packets of Rx: the header, acknowledgements,
// aborts, jumbograms, and what debug and version packets carry.
//
// A datagram is a header of 28 bytes and a body:
//
//	 0       4       8      12      16      20   21    22     23       24       26       28
//	+-------+-------+-------+-------+-------+----+-----+------+--------+--------+--------+-----
//	| epoch |  cid  | call  |  seq  |serial |type|flags|status|security|checksum|service | body
//	+-------+-------+-------+-------+-------+----+-----+------+--------+--------+--------+-----
//
// All integers are big-endian. The low two bits of the connection ID are the channel.
// [ParseHeader] decodes the header. Its type says what the body is: [ParseAck],
// [ParseAbort], [ParseDebugRequest], [ParseVersion]. [SplitData] iterates over the packets
// of a data datagram, of which a jumbogram has several.
//
// The document is draft-zeldovich-rx-spec-00. It was never finished; where it is silent or
// wrong, the functions do what OpenAFS and Linux do, and say so.
//
// All functions are pure. They allocate nothing, apart from errors and strings. They check
// a length before they use it, and what they return may alias what they were given.
package wire
