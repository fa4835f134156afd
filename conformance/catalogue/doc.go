// Package catalogue lists what the RFCs of iWARP and of RPC-over-RDMA require of an
// endpoint, in our own words: each MUST, MUST NOT, SHOULD and SHOULD NOT of RFC
// 5040, 5041, 5044, 6581, 7306, 8166, 8167 and 8797, and those of RFC 5042 that
// apply to an RNIC.
//
// A clause has an ID that never changes: RFC, section and ordinal within the
// section, such as rfc5041-7.1-3. A clause that is added later gets the next ordinal
// of its section. Its Party is the side to which it applies. A clause that can't be
// tested from outside says why.
//
// The test cases are in package cases. They name the clauses that they test.
package catalogue
