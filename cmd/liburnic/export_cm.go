//go:build linux && cgo

package main

// #include "engine.h"
import "C"

import (
	"syscall"
	"unsafe"

	"urnic/internal/dropin"
)

// As in engine.go.
var (
	_ [unsafe.Sizeof(dropin.CMEvent{}) - C.sizeof_struct_urnic_cm_event]struct{}
	_ [C.sizeof_struct_urnic_cm_event - unsafe.Sizeof(dropin.CMEvent{})]struct{}
	_ [unsafe.Sizeof(dropin.CMAddrs{}) - C.sizeof_struct_urnic_addrs]struct{}
	_ [C.sizeof_struct_urnic_addrs - unsafe.Sizeof(dropin.CMAddrs{})]struct{}
	_ [unsafe.Sizeof(dropin.ConnParam{}) - C.sizeof_struct_urnic_conn_param]struct{}
	_ [C.sizeof_struct_urnic_conn_param - unsafe.Sizeof(dropin.ConnParam{})]struct{}
	_ [unsafe.Sizeof(dropin.ServiceParam{}) - C.sizeof_struct_urnic_service_param]struct{}
	_ [C.sizeof_struct_urnic_service_param - unsafe.Sizeof(dropin.ServiceParam{})]struct{}
)

// bytes returns memory of the caller's, or nil if there is none.
func octets(p unsafe.Pointer, n C.uint32_t) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

//export urnic_engine_evch_create
func urnic_engine_evch_create(evch *C.uint32_t, fd *C.int32_t) C.int {
	if evch == nil || fd == nil {
		return C.int(syscall.EINVAL)
	}
	h, n, errno := engine.Load().EvchCreate()
	put(evch, h)
	*fd = C.int32_t(n)
	return C.int(errno)
}

//export urnic_engine_evch_next
func urnic_engine_evch_next(evch C.uint32_t, out *C.struct_urnic_cm_event) C.int {
	return C.int(engine.Load().EvchNext(dropin.Handle(evch), as[dropin.CMEvent](unsafe.Pointer(out))))
}

//export urnic_engine_evch_destroy
func urnic_engine_evch_destroy(evch C.uint32_t) C.int {
	return C.int(engine.Load().EvchDestroy(dropin.Handle(evch)))
}

//export urnic_engine_id_create
func urnic_engine_id_create(evch C.uint32_t, cookie C.uint64_t, id *C.uint32_t) C.int {
	if id == nil {
		return C.int(syscall.EINVAL)
	}
	h, errno := engine.Load().IDCreate(dropin.Handle(evch), uint64(cookie))
	put(id, h)
	return C.int(errno)
}

//export urnic_engine_id_set_cookie
func urnic_engine_id_set_cookie(id C.uint32_t, cookie C.uint64_t) C.int {
	return C.int(engine.Load().IDSetCookie(dropin.Handle(id), uint64(cookie)))
}

//export urnic_engine_id_migrate
func urnic_engine_id_migrate(id, evch C.uint32_t) C.int {
	return C.int(engine.Load().IDMigrate(dropin.Handle(id), dropin.Handle(evch)))
}

//export urnic_engine_id_addrs
func urnic_engine_id_addrs(id C.uint32_t, out *C.struct_urnic_addrs) C.int {
	return C.int(engine.Load().IDAddrs(dropin.Handle(id), as[dropin.CMAddrs](unsafe.Pointer(out))))
}

//export urnic_engine_id_bind
func urnic_engine_id_bind(id C.uint32_t, addr unsafe.Pointer, n C.uint32_t) C.int {
	return C.int(engine.Load().IDBind(dropin.Handle(id), octets(addr, n)))
}

//export urnic_engine_id_resolve_addr
func urnic_engine_id_resolve_addr(id C.uint32_t, src unsafe.Pointer, srcLen C.uint32_t, dst unsafe.Pointer, dstLen, _ C.uint32_t) C.int {
	return C.int(engine.Load().IDResolveAddr(dropin.Handle(id), octets(src, srcLen), octets(dst, dstLen)))
}

//export urnic_engine_id_resolve_route
func urnic_engine_id_resolve_route(id, _ C.uint32_t) C.int {
	return C.int(engine.Load().IDResolveRoute(dropin.Handle(id)))
}

//export urnic_engine_id_listen
func urnic_engine_id_listen(id, backlog C.uint32_t) C.int {
	return C.int(engine.Load().IDListen(dropin.Handle(id), uint32(backlog)))
}

//export urnic_engine_id_connect
func urnic_engine_id_connect(id C.uint32_t, param *C.struct_urnic_conn_param) C.int {
	return C.int(engine.Load().IDConnect(dropin.Handle(id), as[dropin.ConnParam](unsafe.Pointer(param))))
}

//export urnic_engine_id_accept
func urnic_engine_id_accept(id C.uint32_t, param *C.struct_urnic_conn_param) C.int {
	return C.int(engine.Load().IDAccept(dropin.Handle(id), as[dropin.ConnParam](unsafe.Pointer(param))))
}

//export urnic_engine_id_reject
func urnic_engine_id_reject(id C.uint32_t, privateData unsafe.Pointer, n C.uint32_t) C.int {
	return C.int(engine.Load().IDReject(dropin.Handle(id), octets(privateData, n)))
}

//export urnic_engine_id_disconnect
func urnic_engine_id_disconnect(id C.uint32_t) C.int {
	return C.int(engine.Load().IDDisconnect(dropin.Handle(id)))
}

//export urnic_engine_id_set_option
func urnic_engine_id_set_option(id, level, name C.uint32_t, value unsafe.Pointer, n C.uint32_t) C.int {
	return C.int(engine.Load().IDSetOption(dropin.Handle(id), uint32(level), uint32(name), octets(value, n)))
}

//export urnic_engine_id_destroy
func urnic_engine_id_destroy(id C.uint32_t) C.int {
	return C.int(engine.Load().IDDestroy(dropin.Handle(id)))
}

//export urnic_engine_id_create_datagram
func urnic_engine_id_create_datagram(evch C.uint32_t, cookie C.uint64_t, id *C.uint32_t) C.int {
	if id == nil {
		return C.int(syscall.EINVAL)
	}
	h, errno := engine.Load().IDCreateDatagram(dropin.Handle(evch), uint64(cookie))
	put(id, h)
	return C.int(errno)
}

//export urnic_engine_id_resolve_service
func urnic_engine_id_resolve_service(id C.uint32_t, param *C.struct_urnic_service_param) C.int {
	return C.int(engine.Load().IDResolveService(dropin.Handle(id), as[dropin.ServiceParam](unsafe.Pointer(param))))
}

//export urnic_engine_id_serve
func urnic_engine_id_serve(id C.uint32_t, param *C.struct_urnic_service_param) C.int {
	return C.int(engine.Load().IDServe(dropin.Handle(id), as[dropin.ServiceParam](unsafe.Pointer(param))))
}

//export urnic_engine_id_join
func urnic_engine_id_join(id C.uint32_t, addr unsafe.Pointer, n C.uint32_t, cookie C.uint64_t) C.int {
	return C.int(engine.Load().IDJoin(dropin.Handle(id), octets(addr, n), uint64(cookie)))
}

//export urnic_engine_id_leave
func urnic_engine_id_leave(id C.uint32_t, cookie C.uint64_t) C.int {
	return C.int(engine.Load().IDLeave(dropin.Handle(id), uint64(cookie)))
}
