package rpc

// An element is a type whose pointers are Values.
type element[T any] interface {
	*T
	Value
}

// Slice is a variable-length array of at most so many values, each of which takes at least
// size bytes.
func Slice[T any, P element[T]](x *XDR, s *[]T, most, size int) {
	n := count(x, len(*s), most, size)
	if x.e == nil {
		*s = sized[T](n)
	}
	if n == len(*s) {
		Array[T, P](x, *s)
	}
}

// Array is a fixed-length array of values.
func Array[T any, P element[T]](x *XDR, s []T) {
	for i := range s {
		if x.Err() != nil {
			return
		}
		P(&s[i]).XDR(x)
	}
}

// Int32s is a variable-length array of at most so many integers.
func Int32s[T ~int32](x *XDR, s *[]T, most int) {
	n := count(x, len(*s), most, 4)
	if x.e == nil {
		*s = sized[T](n)
	}
	if n == len(*s) {
		Int32Array(x, *s)
	}
}

// Uint32s is a variable-length array of at most so many unsigned integers.
func Uint32s[T ~uint32](x *XDR, s *[]T, most int) {
	n := count(x, len(*s), most, 4)
	if x.e == nil {
		*s = sized[T](n)
	}
	if n == len(*s) {
		Uint32Array(x, *s)
	}
}

// Int32Array is a fixed-length array of integers.
func Int32Array[T ~int32](x *XDR, s []T) {
	for i := range s {
		if v := int32(s[i]); x.e != nil { // writes nothing: others may encode s, too
			x.e.Int32(v)
			continue
		}
		s[i] = T(x.d.Int32())
	}
}

// Uint32Array is a fixed-length array of unsigned integers.
func Uint32Array[T ~uint32](x *XDR, s []T) {
	for i := range s {
		if v := uint32(s[i]); x.e != nil { // writes nothing: others may encode s, too
			x.e.Uint32(v)
			continue
		}
		s[i] = T(x.d.Uint32())
	}
}

// Strings is a variable-length array of at most so many strings in arrays of n characters.
func Strings(x *XDR, s *[]string, most, n int) {
	count := count(x, len(*s), most, 4*n)
	if x.e == nil {
		*s = sized[string](count)
	}
	if count != len(*s) {
		return
	}
	for i := range *s {
		x.Text(&(*s)[i], n)
	}
}

// count is the number of elements in front of a variable-length array: n while encoding. It
// returns -1 if they are too many.
func count(x *XDR, n, most, size int) int {
	if x.e == nil {
		return x.d.Count(most, size)
	}
	if n > most {
		x.Fail("a count", ErrLong)
		return -1
	}
	x.e.Uint32(uint32(n))
	return n
}

// sized returns a slice of n elements, nil for none.
func sized[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}
