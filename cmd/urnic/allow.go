package main

import (
	"fmt"
	"net/netip"
)

// parseAllow returns the addresses that --allow names; none if they are all.
func parseAllow(list []string) (allowed []netip.Prefix, err error) {
	for _, a := range list {
		if a == "all" {
			return nil, nil
		}
		p, err := netip.ParsePrefix(a)
		if err != nil {
			addr, e := netip.ParseAddr(a)
			if e != nil {
				return nil, fmt.Errorf("--allow %s: give an address, addresses such as 192.0.2.0/24, or all", a)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		allowed = append(allowed, p)
	}
	return allowed, nil
}
