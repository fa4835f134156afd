//go:build linux

package dropin

import (
	"fmt"
	"syscall"

	"urnic/rnic"
)

// What programs written for InfiniBand use and iWARP hardware refuses. Each is warned
// about once, or refused with URNIC_STRICT=1.
const (
	immediateData = "immediate data: RDMAP has none before RFC 7306 §6, and most iWARP hardware neither"
	atomics       = "atomic operations: RDMAP has none before RFC 7306 §5, and most iWARP hardware neither"
	readSink      = "an RDMA Read into memory without IBV_ACCESS_REMOTE_WRITE: its data arrives as a tagged message of the peer (RFC 5040 §5.2)"
	readSinks     = "an RDMA Read into several pieces of memory: the Read Request of RDMAP has one sink (RFC 5040 §4.4)"
)

// beyond judges the use of what is beyond iWARP hardware.
func (e *Engine) beyond(what string) error {
	if e.settings.strict {
		return fmt.Errorf("%s: %w", what, syscall.EOPNOTSUPP)
	}
	e.log.warnOnce(what)
	return nil
}

// judgeSinks judges where a Read leaves its data. Memory that is not registered is the
// affair of the completion.
func (e *Engine) judgeSinks(sgl []rnic.SGE) error {
	if !e.settings.strict && e.log.level < logWarning {
		return nil
	}
	if len(sgl) > 1 {
		if err := e.beyond(readSinks); err != nil {
			return err
		}
	}
	for i := range sgl {
		if access, is := e.granted.Load(uint32(sgl[i].LKey)); is && access.(uint32)&accessRemoteWrite == 0 {
			if err := e.beyond(readSink); err != nil {
				return err
			}
		}
	}
	return nil
}
