package catalogue

// rfc5042 holds the clauses of RFC 5042, DDP/RDMAP Security, that bind the RNIC or
// its Privileged Resource Manager. Left out are those on applications, on IPsec and
// on what an administrator does.
//
// §6.1.1 advises how to choose STags with a "should" in small letters. That is here
// all the same: RFC 5040 §8.1.1 makes a MUST of a part of it.
var rfc5042 = []Clause{
	{"rfc5042-3-1", Must, Local, "What could affect other consumers goes through the Privileged Resource Manager", "inside the host: who mediates between consumer and RNIC is not seen from outside"},
	{"rfc5042-3-2", Must, Local, "Requests for scarce resources go through the Privileged Resource Manager", "inside the host: the way of a request is not seen from outside"},
	{"rfc5042-3-3", MustNot, Local, "Streams are not assumed to trust each other unless a mechanism makes sure of it", "inside the host: an assumption is not seen, and what follows from it has clauses of its own"},
	{"rfc5042-6.1.1-1", Must, Sink | Local, "STags are not shared: each stream has a PD of its own, or the STag is valid for one stream only", ""},
	{"rfc5042-6.1.1-2", Must, Sink, "A stream of one PD has no access through an STag of another PD", ""},
	{"rfc5042-6.1.1-3", Must, Sink, "An STag limited to one stream is of no use to any other stream", ""},
	{"rfc5042-6.1.1-4", Should, Local, "The STag that is allocated next is difficult to predict", ""},
	{"rfc5042-6.1.1-5", Should, Local, "An STag is reused as late as possible", ""},
	{"rfc5042-6.1.1-6", ShouldNot, Local, "STags neither count up from a fixed start nor are the same for each operation", ""},
	{"rfc5042-6.2.1-1", Must, Sink, "A peer reaches no octet outside the buffer that the STag was enabled for, neither to write nor to read", ""},
	{"rfc5042-6.2.2-1", Must, Sink, "Once remote access is revoked, nothing that arrives with the STag modifies the buffer", ""},
	{"rfc5042-6.3.5-1", Must, Sink | Local, "A buffer exposed for remote write only has no other remote right: a Read of it is refused", ""},
	{"rfc5042-6.4.1-1", Must, Local, "All scarce resources are allocated under the control of the Resource Manager, which sets limits", ""},
	{"rfc5042-6.4.3.1-1", Must, Sink | Local, "Shared receive buffers: a peer that takes more than its fair share is detected", ""},
	{"rfc5042-6.4.3.2-1", Must, Local, "The Resource Manager controls the allocation of CQ entries", ""},
	{"rfc5042-6.4.3.3-1", Must, Sink | Local, "Streams without Partial Mutual Trust share no Read Request Queue: overrunning one harms no other stream", ""},
	{"rfc5042-6.4.3.3-2", Should, Source | Local, "The number of outstanding Read Requests can be capped", ""},
	{"rfc5042-6.4.6-1", Must, Sink | Local, "A CQ that overflows leaves the streams that do not use it unaffected", ""},
	{"rfc5042-7.1-1", MustNot, Local, "A CQ is not shared by consumers without Partial Mutual Trust", "a tester meets one consumer, and whom that trusts is not seen from outside"},
	{"rfc5042-7.2-1", Must, Local, "Only a trusted party, such as the Resource Manager, allocates Read Request Queue entries", "inside the host: who may call an interface is not seen from outside"},
	{"rfc5042-7.2-2", Should, Local, "A consumer gets no more Read Request Queue entries than its fair share", ""},
	{"rfc5042-7.3-1", Must, Local, "The consumer's right to a buffer is verified before an STag is associated with it", ""},
}
