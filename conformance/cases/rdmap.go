package cases

import (
	"slices"

	"urnic/conformance"
)

// rdmap is the cases on RDMAP's messages, their order and Terminates (RFC 5040).
func rdmap() []conformance.Case {
	return slices.Concat(rdmapControl(), rdmapOpcodes(), rdmapSent(), rdmapReads(), rdmapReadsRefused(), rdmapReadsTaken(), rdmapReadsBegun(), rdmapFetches(), rdmapFetchesRefused(), rdmapSends(), rdmapInvalidation(), rdmapTerminatesSent(), rdmapErrors(), rdmapTerminatesReceived(), rdmapOrder(), rdmapLater())
}
