package krb5

// nfold stretches or shrinks in to n bytes (RFC 3961 §5.1): copies of in are put behind
// each other, each rotated right by 13 bits more than the one before, until the length is
// a multiple of n too; pieces of n bytes are then added in ones' complement.
func nfold(in []byte, n int) []byte {
	if len(in) == 0 || n <= 0 {
		return nil
	}
	length := lcm(len(in), n)
	sum := make([]uint, n)
	for i := range length {
		sum[i%n] += uint(rotated(in, i/len(in)*13, i%len(in)))
	}

	// Carries go to the byte on the left, and from the first to the last, until there
	// are none.
	out := make([]byte, n)
	for carried := true; carried; {
		carried = false
		for i, s := range sum {
			if s > 0xff {
				sum[i] = s & 0xff
				sum[(i+n-1)%n] += s >> 8
				carried = true
			}
		}
	}
	for i, s := range sum {
		out[i] = byte(s)
	}
	return out
}

// rotated returns the byte at index of in, when in is rotated right by a number of bits.
func rotated(in []byte, bits, index int) byte {
	n := len(in)
	whole, part := bits/8, bits%8
	at := func(i int) byte { return in[((i-whole)%n+n)%n] }
	return at(index)>>part | at(index-1)<<(8-part)
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
