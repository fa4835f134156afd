//go:build linux && cgo

package main

// #include "engine.h"
import "C"

import (
	"unsafe"

	"urnic/internal/dropin"
)

//export urnic_engine_mr_reg
func urnic_engine_mr_reg(pd C.uint32_t, mr *C.struct_urnic_mr) C.int {
	return C.int(engine.Load().MRReg(dropin.Handle(pd), as[dropin.Region](unsafe.Pointer(mr))))
}

//export urnic_engine_null_mr_alloc
func urnic_engine_null_mr_alloc(pd C.uint32_t, mr *C.struct_urnic_mr) C.int {
	return C.int(engine.Load().NullMRAlloc(dropin.Handle(pd), as[dropin.Region](unsafe.Pointer(mr))))
}

//export urnic_engine_mr_rereg
func urnic_engine_mr_rereg(mr, flags, pd C.uint32_t, inOut *C.struct_urnic_mr) C.int {
	return C.int(engine.Load().MRRereg(dropin.Handle(mr), uint32(flags), dropin.Handle(pd), as[dropin.Region](unsafe.Pointer(inOut))))
}

//export urnic_engine_mr_dereg
func urnic_engine_mr_dereg(mr C.uint32_t) C.int {
	return C.int(engine.Load().MRDereg(dropin.Handle(mr)))
}

//export urnic_engine_mw_alloc
func urnic_engine_mw_alloc(pd, kind C.uint32_t, mw, rkey *C.uint32_t) C.int {
	h, key, errno := engine.Load().MWAlloc(dropin.Handle(pd), uint32(kind))
	put(mw, h)
	put(rkey, dropin.Handle(key))
	return C.int(errno)
}

//export urnic_engine_mw_bind
func urnic_engine_mw_bind(qp C.uint32_t, bind *C.struct_urnic_bind) C.int {
	return C.int(engine.Load().MWBind(dropin.Handle(qp), as[dropin.WindowBind](unsafe.Pointer(bind))))
}

//export urnic_engine_mw_free
func urnic_engine_mw_free(mw C.uint32_t) C.int {
	return C.int(engine.Load().MWFree(dropin.Handle(mw)))
}
