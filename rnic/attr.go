package rnic

import "urnic/pd"

// Attr describes a device: what it can do, and what it may hold.
type Attr struct {
	Name         string    `json:"name"`
	Limits       pd.Limits `json:"-"` // of the device
	DomainLimits pd.Limits `json:"-"` // of each protection domain

	MaxSGE      int    `json:"max_sge"`
	MaxReadSGE  int    `json:"max_read_sge"`
	MaxInline   int    `json:"max_inline"`
	MaxWR       int    `json:"max_wr"`
	MaxCQE      int    `json:"max_cqe"`
	MaxIRD      int    `json:"max_ird"`
	MaxORD      int    `json:"max_ord"`
	MaxMessage  uint64 `json:"max_message"`
	PrivateData int    `json:"max_private_data"`
	Events      int    `json:"max_events"`
	// StreamBuffers is the maximum of bytes of buffers that one stream keeps while
	// it waits for its peer. Limits[pd.StreamOctets] limits those of all streams.
	StreamBuffers int `json:"max_stream_buffers"`

	Atomics      bool `json:"atomics"`
	Immediate    bool `json:"immediate_data"`
	Windows      bool `json:"memory_windows"`
	FastRegister bool `json:"fast_registration"`
	ZeroBased    bool `json:"zero_based"`
	SRQ          bool `json:"shared_receive_queues"`
}

// Attr returns the device's attributes.
func (d *Device) Attr() Attr {
	if !d.made() {
		return Attr{}
	}
	device, domain := d.manager.Limits()
	return Attr{
		Name: d.cfg.Name, Limits: device, DomainLimits: domain,
		MaxSGE: d.cfg.MaxSGE, MaxReadSGE: MaxReadSGE, MaxInline: d.cfg.MaxInline, MaxWR: d.cfg.MaxWR, MaxCQE: d.cfg.MaxCQE,
		MaxIRD: d.cfg.MaxIRD, MaxORD: d.cfg.MaxORD, MaxMessage: MaxMessage, PrivateData: 508, Events: eventsKept, StreamBuffers: StreamBuffers,
		Atomics: true, Immediate: true, Windows: true, FastRegister: true, ZeroBased: true, SRQ: true,
	}
}

// Held returns how much of a resource the device holds now.
func (d *Device) Held(r pd.Resource) uint64 {
	if !d.made() {
		return 0
	}
	return d.manager.Held(r)
}
