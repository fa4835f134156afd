package main

import (
	"urnic/internal/dropin"
	"urnic/internal/dropin/sysfs"
)

// view returns what sysfs shows of the devices that these settings make.
func view(environment []string) ([]sysfs.Entry, error) {
	devices, err := dropin.View(environment)
	if err != nil {
		return nil, err
	}
	return sysfs.Tree(devices), nil
}
