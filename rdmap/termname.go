package rdmap

import (
	"fmt"

	"urnic/ddp"
	"urnic/mpa"
)

var termNames = map[TermCode]string{
	CodeInvalidSTag:               "invalid STag",
	CodeBaseBounds:                "base or bounds violation",
	CodeAccessRights:              "access rights violation",
	CodeSTagNotAssociated:         "STag not associated with RDMAP stream",
	CodeTOWrap:                    "TO wrap",
	CodeCannotInvalidate:          "STag cannot be invalidated",
	CodeProtectionUnspecified:     "unspecified remote protection error",
	CodeInvalidVersion:            "invalid RDMAP version",
	CodeUnexpectedOpcode:          "unexpected opcode",
	CodeStreamCatastrophic:        "catastrophic error, localized to RDMAP stream",
	CodeGlobalCatastrophic:        "catastrophic error, global",
	CodeOperationCannotInvalidate: "STag cannot be invalidated",
	CodeOperationUnspecified:      "unspecified remote operation error",
}

// name returns the words of the RFC that defines the code.
func (c TermCode) name() string {
	switch {
	case c.Layer() == LayerDDP:
		return "DDP: " + ddp.Code(c&0x0FFF).String()
	case c.Layer() == LayerLLP && c.EType() == 0:
		return "MPA: " + mpa.Code(c.Code()).String()
	case c.LocalCatastrophic():
		return "RDMAP: local catastrophic error"
	}
	if s, ok := termNames[c]; ok {
		return "RDMAP: " + s
	}
	return fmt.Sprintf("layer %d error type %d code 0x%02x", c.Layer(), c.EType(), c.Code())
}
