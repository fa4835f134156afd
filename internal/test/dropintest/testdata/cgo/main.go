// A program in Go with cgo that opens a device of libibverbs and registers memory, while its own garbage collector works.
package main

/*
#cgo LDFLAGS: -libverbs
#include <infiniband/verbs.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	var n C.int
	devices := C.ibv_get_device_list(&n)
	if n != 1 {
		fmt.Println(n, "devices")
		os.Exit(1)
	}
	const size = 1 << 16
	memory := C.malloc(size)
	context := C.ibv_open_device(*devices)
	pd := C.ibv_alloc_pd(context)
	cq := C.ibv_create_cq(context, 16, nil, nil, 0)
	for range 200 {
		mr := C.ibv_reg_mr(pd, memory, size, C.IBV_ACCESS_LOCAL_WRITE)
		runtime.GC()
		if mr == nil || C.ibv_dereg_mr(mr) != 0 {
			fmt.Println("no memory region")
			os.Exit(1)
		}
	}
	if C.ibv_destroy_cq(cq) != 0 || C.ibv_dealloc_pd(pd) != 0 || C.ibv_close_device(context) != 0 {
		fmt.Println("objects are left")
		os.Exit(1)
	}
	fmt.Println("two runtimes get along")
}
