// Package catalogue lists what the RFCs of iWARP and of RPC-over-RDMA demand of an
// endpoint: each MUST, MUST NOT, SHOULD and SHOULD NOT of RFC 5040, 5041, 5044, 6581
// and 7306, of RFC 5042 what binds an RNIC, and of RFC 8166, 8167 and 8797, in words
// of our own.
//
// A clause has an ID that never changes: RFC, section and ordinal within the
// section, such as rfc5041-7.1-3. One that is added later takes the next ordinal
// of its section. Who is bound by it is a Party; a clause that nobody can be
// tested for from outside says why.
//
// The test cases are elsewhere: they name the clauses that they test.
package catalogue
