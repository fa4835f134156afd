package cases

import (
	"slices"

	"urnic/conformance"
)

// framing is the cases on FPDUs, Markers and CRCs (RFC 5044 §3 to §6, §7.2, §8).
func framing() []conformance.Case {
	return slices.Concat(
		framingLengths(), framingPad(), framingLong(), framingCRC(), framingMarkers(), framingMarked(),
		framingFigures, framingSplit(), framingMULPDU(), framingErrors, framingLater(),
	)
}
