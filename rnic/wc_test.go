package rnic

// WithPaired returns a completion of a receive to which immediate data of a Send belong.
func WithPaired(wc WC) WC {
	wc.paired = true
	return wc
}
