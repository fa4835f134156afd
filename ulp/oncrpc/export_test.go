package oncrpc

// SetXID lets the next call have the XID after x, unless that is in flight.
func (c *Client) SetXID(x uint32) { c.xid = x }
