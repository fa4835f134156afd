package dirfs

// Options says how a directory is served. The zero value stands for the defaults.
type Options struct {
	// ReadOnly lets nothing be changed.
	ReadOnly bool
	// Async leaves it to the system when changes of names reach the disk: faster, but
	// not what RFC 1813 §1.6 demands. Data is still stable when that is asked for.
	Async bool
	// MaxOpen is how many descriptors are kept open: 1024, or a quarter of what the
	// process may have if that is less.
	MaxOpen int
	// MaxKnown is how many files are remembered by name: 1<<20, of about 200 bytes
	// each. What is beyond that and used again is searched for.
	MaxKnown int
}

const (
	maxOpen  = 1024
	maxKnown = 1 << 20
)

func (o *Options) setDefaults() {
	if o.MaxOpen <= 0 {
		o.MaxOpen = maxOpen
	}
	if o.MaxKnown <= 0 {
		o.MaxKnown = maxKnown
	}
}
