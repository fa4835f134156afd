package pd

import "fmt"

// A Resource is a kind of object or memory that a device holds for a program or
// a peer.
type Resource uint8

// The resources.
const (
	Domains            Resource = iota // protection domains
	QueuePairs                         // queue pairs, that is streams
	CompletionQueues                   // completion queues
	CQEntries                          // entries of all completion queues
	CompletionChannels                 // completion channels, each of which can take a file descriptor
	SharedQueues                       // shared receive queues
	SendWRs                            // entries of all send queues
	RecvWRs                            // entries of all receive queues, shared ones too
	Regions                            // memory regions
	Windows                            // memory windows
	MemoryOctets                       // bytes of registered memory
	InboundReads                       // entries of all inbound read request queues (IRD)
	OutboundReads                      // entries of all outbound read queues (ORD)
	Listeners                          // listening endpoints
	HalfOpen                           // connections of peers whose Request has not arrived yet
	StreamOctets                       // bytes of buffers that streams keep while they wait for their peers

	NumResources = int(iota)
)

var resourceNames = [NumResources]string{
	Domains: "protection domains", QueuePairs: "queue pairs", CompletionQueues: "completion queues",
	CQEntries: "completion queue entries", CompletionChannels: "completion channels", SharedQueues: "shared receive queues",
	SendWRs: "send work requests", RecvWRs: "receive work requests",
	Regions: "memory regions", Windows: "memory windows", MemoryOctets: "octets of registered memory",
	InboundReads: "inbound reads (IRD)", OutboundReads: "outbound reads (ORD)",
	Listeners: "listeners", HalfOpen: "half-open connections", StreamOctets: "octets of stream buffers",
}

// known reports whether r is one of the resources.
func (r Resource) known() bool { return int(r) < NumResources }

// String names the resource in the plural.
func (r Resource) String() string {
	if r.known() {
		return resourceNames[r]
	}
	return fmt.Sprintf("resource %d", uint8(r))
}

// Limits has the limit of each resource. Zero stands for the default. A literal
// names what it sets: Limits{pd.QueuePairs: 64}.
type Limits [NumResources]uint64

// DefaultLimits returns the limits of a device whose configuration does not set
// them. They allow one device some ten thousand streams.
func DefaultLimits() Limits {
	return Limits{
		Domains: 4096, QueuePairs: 16384, CompletionQueues: 16384, CQEntries: 1 << 24, CompletionChannels: 1024,
		SharedQueues: 4096, SendWRs: 1 << 24, RecvWRs: 1 << 24, Regions: 1 << 20, Windows: 1 << 20, MemoryOctets: 1 << 40,
		InboundReads: 1 << 20, OutboundReads: 1 << 20, Listeners: 1024, HalfOpen: 256, StreamOctets: 1 << 29,
	}
}

// or returns l with its zeros replaced by the values of def.
func (l Limits) or(def Limits) Limits {
	for r, v := range l {
		if v == 0 {
			l[r] = def[r]
		}
	}
	return l
}
