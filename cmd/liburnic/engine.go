//go:build linux && cgo

package main

// #include "engine.h"
import "C"

import (
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"urnic/internal/dropin"
)

// engine is that of the process, from urnic_engine_open on. Other calls come later.
var engine atomic.Pointer[dropin.Engine]

// stderr is where human-readable lines go: the descriptor, not what Go has of it, so that
// it is not closed with a program's.
type stderr struct{}

func (stderr) Write(p []byte) (int, error) {
	n, err := syscall.Write(2, p)
	if err != nil {
		return n, os.NewSyscallError("write", err)
	}
	return n, nil
}

var _ io.Writer = stderr{}

// The sizes of structs that both halves know, compared when this is compiled: a
// length below 0 is an error.
var (
	_ [unsafe.Sizeof(dropin.DeviceAttr{}) - C.sizeof_struct_urnic_device]struct{}
	_ [C.sizeof_struct_urnic_device - unsafe.Sizeof(dropin.DeviceAttr{})]struct{}
	_ [unsafe.Sizeof(dropin.GID{}) - C.sizeof_struct_urnic_gid]struct{}
	_ [C.sizeof_struct_urnic_gid - unsafe.Sizeof(dropin.GID{})]struct{}
	_ [unsafe.Sizeof(dropin.Async{}) - C.sizeof_struct_urnic_async]struct{}
	_ [C.sizeof_struct_urnic_async - unsafe.Sizeof(dropin.Async{})]struct{}
	_ [unsafe.Sizeof(dropin.Region{}) - C.sizeof_struct_urnic_mr]struct{}
	_ [C.sizeof_struct_urnic_mr - unsafe.Sizeof(dropin.Region{})]struct{}
	_ [unsafe.Sizeof(dropin.WindowBind{}) - C.sizeof_struct_urnic_bind]struct{}
	_ [C.sizeof_struct_urnic_bind - unsafe.Sizeof(dropin.WindowBind{})]struct{}
	_ [unsafe.Sizeof(dropin.SRQAttr{}) - C.sizeof_struct_urnic_srq_attr]struct{}
	_ [C.sizeof_struct_urnic_srq_attr - unsafe.Sizeof(dropin.SRQAttr{})]struct{}
	_ [unsafe.Sizeof(dropin.QPInit{}) - C.sizeof_struct_urnic_qp_init]struct{}
	_ [C.sizeof_struct_urnic_qp_init - unsafe.Sizeof(dropin.QPInit{})]struct{}
	_ [unsafe.Sizeof(dropin.AHAttr{}) - C.sizeof_struct_urnic_ah_attr]struct{}
	_ [C.sizeof_struct_urnic_ah_attr - unsafe.Sizeof(dropin.AHAttr{})]struct{}
	_ [unsafe.Sizeof(dropin.QPAttr{}) - C.sizeof_struct_urnic_qp_attr]struct{}
	_ [C.sizeof_struct_urnic_qp_attr - unsafe.Sizeof(dropin.QPAttr{})]struct{}
	_ [unsafe.Sizeof(dropin.SendWR{}) - C.sizeof_struct_urnic_send_wr]struct{}
	_ [C.sizeof_struct_urnic_send_wr - unsafe.Sizeof(dropin.SendWR{})]struct{}
	_ [unsafe.Sizeof(dropin.RecvWR{}) - C.sizeof_struct_urnic_recv_wr]struct{}
	_ [C.sizeof_struct_urnic_recv_wr - unsafe.Sizeof(dropin.RecvWR{})]struct{}
	_ [unsafe.Sizeof(dropin.WC{}) - C.sizeof_struct_urnic_wc]struct{}
	_ [C.sizeof_struct_urnic_wc - unsafe.Sizeof(dropin.WC{})]struct{}
)

// The compiler has no C.struct_urnic_send_wr.next; a cast is what the halves agree on.
func as[T any](p unsafe.Pointer) *T { return (*T)(p) }

// put stores a handle where C wants it.
func put(to *C.uint32_t, h dropin.Handle) {
	if to != nil {
		*to = C.uint32_t(h)
	}
}

//export urnic_engine_open
func urnic_engine_open(setup *C.struct_urnic_setup) C.int {
	if setup == nil {
		return C.int(syscall.EINVAL)
	}
	if setup.version != C.URNIC_ENGINE_VERSION {
		return C.int(syscall.ELIBBAD)
	}
	if engine.Load() != nil {
		return C.int(syscall.EBUSY)
	}
	var settings []string
	if at := setup.settings; at != nil {
		for ; *at != nil; at = (**C.char)(unsafe.Add(unsafe.Pointer(at), unsafe.Sizeof(*at))) {
			settings = append(settings, C.GoString(*at))
		}
	}
	dropin.StartHandles(uint32(setup.generation))
	e, err := dropin.Open(settings, stderr{})
	if err != nil {
		_, _ = stderr{}.Write([]byte("urnic: " + err.Error() + "\n")) // there is nobody else to tell
		return C.int(syscall.EINVAL)
	}
	if !engine.CompareAndSwap(nil, e) {
		_ = e.Close() // somebody else's is in use
		return C.int(syscall.EBUSY)
	}
	return 0
}

//export urnic_engine_log
func urnic_engine_log(level C.uint32_t, message *C.char) {
	if e := engine.Load(); e != nil && message != nil {
		e.Log(uint32(level), C.GoString(message))
	}
}

//export urnic_engine_device
func urnic_engine_device(index C.uint32_t, out *C.struct_urnic_device) C.int {
	return C.int(engine.Load().Device(uint32(index), as[dropin.DeviceAttr](unsafe.Pointer(out))))
}

//export urnic_engine_gid
func urnic_engine_gid(device, port, index C.uint32_t, out *C.struct_urnic_gid) C.int {
	return C.int(engine.Load().GID(uint32(device), uint32(port), uint32(index), as[dropin.GID](unsafe.Pointer(out))))
}

//export urnic_engine_context_open
func urnic_engine_context_open(device C.uint32_t, cookie C.uint64_t, ctx *C.uint32_t, async *C.int32_t) C.int {
	if ctx == nil || async == nil {
		return C.int(syscall.EINVAL)
	}
	h, fd, errno := engine.Load().ContextOpen(uint32(device), uint64(cookie))
	put(ctx, h)
	*async = C.int32_t(fd)
	return C.int(errno)
}

//export urnic_engine_context_close
func urnic_engine_context_close(ctx C.uint32_t) C.int {
	return C.int(engine.Load().ContextClose(dropin.Handle(ctx)))
}

//export urnic_engine_async_next
func urnic_engine_async_next(ctx C.uint32_t, out *C.struct_urnic_async) C.int {
	return C.int(engine.Load().AsyncNext(dropin.Handle(ctx), as[dropin.Async](unsafe.Pointer(out))))
}

//export urnic_engine_pd_alloc
func urnic_engine_pd_alloc(ctx C.uint32_t, pd *C.uint32_t) C.int {
	h, errno := engine.Load().PDAlloc(dropin.Handle(ctx))
	put(pd, h)
	return C.int(errno)
}

//export urnic_engine_pd_free
func urnic_engine_pd_free(pd C.uint32_t) C.int {
	return C.int(engine.Load().PDFree(dropin.Handle(pd)))
}
