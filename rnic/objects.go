package rnic

import (
	"maps"
	"slices"
	"sync"
)

// A closer is an object that ends with its device.
type closer interface{ Close() error }

// A registry is a set of objects of one kind.
type registry map[closer]struct{}

// objects are what a device has made and has to close.
type objects struct {
	mu     sync.Mutex
	closed bool
	making sync.WaitGroup // verbs that make something

	listeners, channels, qps, srqs, cqs, windows, regions, pds registry
}

func newObjects() objects {
	return objects{
		listeners: registry{}, channels: registry{}, qps: registry{}, srqs: registry{},
		cqs: registry{}, windows: registry{}, regions: registry{}, pds: registry{},
	}
}

// begin opens a verb that makes something, which ends with end: Close waits for
// it. It returns ErrClosed if the device is closed.
func (o *objects) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ErrClosed
	}
	o.making.Add(1)
	return nil
}

func (o *objects) end() { o.making.Done() }

// put registers an object, in a verb between begin and end.
func (o *objects) put(set registry, c closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	set[c] = struct{}{}
}

// add registers an object of a verb that Close does not wait for, unless the
// device is closed.
func (o *objects) add(set registry, c closer) error {
	if err := o.begin(); err != nil {
		return err
	}
	defer o.end()
	o.put(set, c)
	return nil
}

// remove takes an object out of its registry.
func (o *objects) remove(set registry, c closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(set, c)
}

// members returns the objects of a registry.
func (o *objects) members(set registry) []closer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(set))
}

// closeAll closes the objects of a registry one by one.
func (o *objects) closeAll(set registry) []error {
	var errs []error
	for _, c := range o.members(set) {
		if err := c.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
