package rnic

import (
	"urnic/ddp"
	"urnic/rdmap"
)

// silent is the ULP of a stream that carries nothing but a Terminate.
type silent struct{}

func (silent) ReceiveBuffer(uint32, bool) (ddp.Buffer, error) { return nil, nil }
func (silent) Arrived()                                       {}
func (silent) Deliver(rdmap.Delivery) error                   { return nil }
func (silent) Completed(*rdmap.Operation) error               { return nil }
func (silent) Terminated(rdmap.Terminate)                     {}
func (silent) Wake()                                          {}
func (silent) Next() *rdmap.Operation                         { return nil }
func (silent) Submitted(*rdmap.Operation, uint64)             {}
func (silent) Failed(*rdmap.Operation, error)                 {}
