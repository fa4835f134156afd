//go:build linux && cgo

package main

// #include "engine.h"
import "C"

import (
	"syscall"
	"unsafe"

	"urnic/internal/dropin"
)

//export urnic_engine_channel_create
func urnic_engine_channel_create(ctx C.uint32_t, channel *C.uint32_t, fd *C.int32_t) C.int {
	if channel == nil || fd == nil {
		return C.int(syscall.EINVAL)
	}
	h, n, errno := engine.Load().ChannelCreate(dropin.Handle(ctx))
	put(channel, h)
	*fd = C.int32_t(n)
	return C.int(errno)
}

//export urnic_engine_channel_next
func urnic_engine_channel_next(channel C.uint32_t, cookie *C.uint64_t) C.int {
	return C.int(engine.Load().ChannelNext(dropin.Handle(channel), (*uint64)(cookie)))
}

//export urnic_engine_channel_destroy
func urnic_engine_channel_destroy(channel C.uint32_t) C.int {
	return C.int(engine.Load().ChannelDestroy(dropin.Handle(channel)))
}

//export urnic_engine_cq_create
func urnic_engine_cq_create(ctx C.uint32_t, entries *C.uint32_t, channel C.uint32_t, cookie C.uint64_t, cq *C.uint32_t) C.int {
	h, errno := engine.Load().CQCreate(dropin.Handle(ctx), (*uint32)(entries), dropin.Handle(channel), uint64(cookie))
	put(cq, h)
	return C.int(errno)
}

//export urnic_engine_cq_resize
func urnic_engine_cq_resize(cq C.uint32_t, entries *C.uint32_t) C.int {
	return C.int(engine.Load().CQResize(dropin.Handle(cq), (*uint32)(entries)))
}

//export urnic_engine_cq_poll
func urnic_engine_cq_poll(cq C.uint32_t, n C.int32_t, wcs *C.struct_urnic_wc) C.int {
	return C.int(engine.Load().CQPoll(dropin.Handle(cq), int32(n), as[dropin.WC](unsafe.Pointer(wcs))))
}

//export urnic_engine_cq_await
func urnic_engine_cq_await(cq, most C.uint32_t) {
	engine.Load().CQAwait(dropin.Handle(cq), uint32(most))
}

//export urnic_engine_cq_arm
func urnic_engine_cq_arm(cq, solicitedOnly C.uint32_t) C.int {
	return C.int(engine.Load().CQArm(dropin.Handle(cq), solicitedOnly != 0))
}

//export urnic_engine_cq_destroy
func urnic_engine_cq_destroy(cq C.uint32_t) C.int {
	return C.int(engine.Load().CQDestroy(dropin.Handle(cq)))
}

//export urnic_engine_srq_create
func urnic_engine_srq_create(pd C.uint32_t, attr *C.struct_urnic_srq_attr, cookie C.uint64_t, srq, num *C.uint32_t) C.int {
	h, n, errno := engine.Load().SRQCreate(dropin.Handle(pd), as[dropin.SRQAttr](unsafe.Pointer(attr)), uint64(cookie))
	put(srq, h)
	put(num, dropin.Handle(n))
	return C.int(errno)
}

//export urnic_engine_srq_modify
func urnic_engine_srq_modify(srq C.uint32_t, attr *C.struct_urnic_srq_attr, mask C.uint32_t) C.int {
	return C.int(engine.Load().SRQModify(dropin.Handle(srq), as[dropin.SRQAttr](unsafe.Pointer(attr)), uint32(mask)))
}

//export urnic_engine_srq_query
func urnic_engine_srq_query(srq C.uint32_t, out *C.struct_urnic_srq_attr) C.int {
	return C.int(engine.Load().SRQQuery(dropin.Handle(srq), as[dropin.SRQAttr](unsafe.Pointer(out))))
}

//export urnic_engine_srq_post_recv
func urnic_engine_srq_post_recv(srq C.uint32_t, wr *C.struct_urnic_recv_wr, bad **C.struct_urnic_recv_wr) C.int {
	return C.int(engine.Load().SRQPostRecv(dropin.Handle(srq), as[dropin.RecvWR](unsafe.Pointer(wr)), as[*dropin.RecvWR](unsafe.Pointer(bad))))
}

//export urnic_engine_srq_destroy
func urnic_engine_srq_destroy(srq C.uint32_t) C.int {
	return C.int(engine.Load().SRQDestroy(dropin.Handle(srq)))
}

//export urnic_engine_qp_create
func urnic_engine_qp_create(pd C.uint32_t, init *C.struct_urnic_qp_init) C.int {
	return C.int(engine.Load().QPCreate(dropin.Handle(pd), as[dropin.QPInit](unsafe.Pointer(init))))
}

//export urnic_engine_qp_modify
func urnic_engine_qp_modify(qp C.uint32_t, attr *C.struct_urnic_qp_attr, mask C.uint32_t) C.int {
	return C.int(engine.Load().QPModify(dropin.Handle(qp), as[dropin.QPAttr](unsafe.Pointer(attr)), uint32(mask)))
}

//export urnic_engine_qp_query
func urnic_engine_qp_query(qp C.uint32_t, out *C.struct_urnic_qp_attr) C.int {
	return C.int(engine.Load().QPQuery(dropin.Handle(qp), as[dropin.QPAttr](unsafe.Pointer(out))))
}

//export urnic_engine_qp_post_send
func urnic_engine_qp_post_send(qp C.uint32_t, wr *C.struct_urnic_send_wr, bad **C.struct_urnic_send_wr) C.int {
	return C.int(engine.Load().QPPostSend(dropin.Handle(qp), as[dropin.SendWR](unsafe.Pointer(wr)), as[*dropin.SendWR](unsafe.Pointer(bad))))
}

//export urnic_engine_qp_post_all
func urnic_engine_qp_post_all(qp C.uint32_t, wr *C.struct_urnic_send_wr) C.int {
	return C.int(engine.Load().QPPostAll(dropin.Handle(qp), as[dropin.SendWR](unsafe.Pointer(wr))))
}

//export urnic_engine_qp_post_recv
func urnic_engine_qp_post_recv(qp C.uint32_t, wr *C.struct_urnic_recv_wr, bad **C.struct_urnic_recv_wr) C.int {
	return C.int(engine.Load().QPPostRecv(dropin.Handle(qp), as[dropin.RecvWR](unsafe.Pointer(wr)), as[*dropin.RecvWR](unsafe.Pointer(bad))))
}

//export urnic_engine_leave
func urnic_engine_leave() { engine.Load().Leave() }

//export urnic_engine_leave_patience
func urnic_engine_leave_patience() C.uint32_t {
	return C.uint32_t(engine.Load().LeavePatience().Milliseconds())
}

//export urnic_engine_qp_destroy
func urnic_engine_qp_destroy(qp C.uint32_t) C.int {
	return C.int(engine.Load().QPDestroy(dropin.Handle(qp)))
}

//export urnic_engine_ah_create
func urnic_engine_ah_create(pd C.uint32_t, attr *C.struct_urnic_ah_attr, ah *C.uint32_t) C.int {
	h, errno := engine.Load().AHCreate(dropin.Handle(pd), as[dropin.AHAttr](unsafe.Pointer(attr)))
	put(ah, h)
	return C.int(errno)
}

//export urnic_engine_ah_destroy
func urnic_engine_ah_destroy(ah C.uint32_t) C.int {
	return C.int(engine.Load().AHDestroy(dropin.Handle(ah)))
}

//export urnic_engine_qp_attach
func urnic_engine_qp_attach(qp C.uint32_t, gid unsafe.Pointer) C.int {
	return C.int(engine.Load().QPAttach(dropin.Handle(qp), as[[16]byte](gid)))
}

//export urnic_engine_qp_detach
func urnic_engine_qp_detach(qp C.uint32_t, gid unsafe.Pointer) C.int {
	return C.int(engine.Load().QPDetach(dropin.Handle(qp), as[[16]byte](gid)))
}
