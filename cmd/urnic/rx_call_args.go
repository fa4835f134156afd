package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"urnic/internal/host/plural"
	"urnic/ulp/oncrpc/xdr"
)

// rxArgument appends one argument of a call, TYPE:VALUE, in XDR (RFC 4506).
func rxArgument(b []byte, arg string) ([]byte, error) {
	kind, value, ok := strings.Cut(arg, ":")
	wrong := func(want string) error { return fmt.Errorf("%s: %s", arg, want) }
	if !ok {
		return nil, wrong("give an argument as TYPE:VALUE, such as int:5 or string:foo")
	}
	switch kind {
	case "int":
		n, err := strconv.ParseInt(value, 0, 32)
		if err != nil {
			return nil, wrong("give a whole number of 32 bits with a sign")
		}
		return binary.BigEndian.AppendUint32(b, uint32(n)), nil
	case "uint":
		n, err := strconv.ParseUint(value, 0, 32)
		if err != nil {
			return nil, wrong("give a whole number of 32 bits from 0 on")
		}
		return binary.BigEndian.AppendUint32(b, uint32(n)), nil
	case "hyper":
		n, err := strconv.ParseInt(value, 0, 64)
		if err != nil {
			return nil, wrong("give a whole number of 64 bits with a sign")
		}
		return binary.BigEndian.AppendUint64(b, uint64(n)), nil
	case "uhyper":
		n, err := strconv.ParseUint(value, 0, 64)
		if err != nil {
			return nil, wrong("give a whole number of 64 bits from 0 on")
		}
		return binary.BigEndian.AppendUint64(b, n), nil
	case "bool":
		on, err := strconv.ParseBool(value)
		if err != nil {
			return nil, wrong("give true or false")
		}
		if on {
			return binary.BigEndian.AppendUint32(b, 1), nil
		}
		return binary.BigEndian.AppendUint32(b, 0), nil
	case "string":
		return appendOpaque(b, []byte(value)), nil
	}
	data, err := hex.DecodeString(value)
	switch {
	case kind != "opaque" && kind != "hex":
		return nil, wrong("there are the types int, uint, hyper, uhyper, bool, string, opaque and hex")
	case err != nil:
		return nil, wrong("give hexadecimal digits, two for each byte")
	case kind == "opaque":
		return appendOpaque(b, data), nil
	}
	return append(b, data...), nil
}

// appendOpaque appends data of variable length.
func appendOpaque(b, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	return append(b, make([]byte, -len(data)&3)...)
}

// rxResults decodes a reply as types say, which have commas between them, and returns the
// values as JSON has them.
func rxResults(reply []byte, types []string) ([]any, error) {
	d := xdr.NewDecoder(reply)
	values := make([]any, 0, len(types))
	for _, kind := range types {
		var v any
		switch kind {
		case "int":
			v = d.Int32()
		case "uint":
			v = d.Uint32()
		case "hyper":
			v = d.Int64()
		case "uhyper":
			v = d.Uint64()
		case "bool":
			v = d.Uint32() != 0
		case "string":
			v = d.String(len(reply))
		case "opaque":
			v = hex.EncodeToString(d.Opaque(len(reply)))
		case "rest":
			v = hex.EncodeToString(d.Fixed(d.Left()))
		}
		if err := d.Err(); err != nil {
			return values, fmt.Errorf("the reply has no %s at its place: %w", kind, err)
		}
		values = append(values, v)
	}
	if n := d.Left(); n > 0 {
		return values, fmt.Errorf("the reply has %s more than --results says: add rest", plural.Count(n, "byte"))
	}
	return values, nil
}

// checkResults finds what is wrong with --results.
func checkResults(types []string) error {
	for _, kind := range types {
		switch kind {
		case "int", "uint", "hyper", "uhyper", "bool", "string", "opaque", "rest":
		default:
			return fmt.Errorf("--results: there is no type %q: there are int, uint, hyper, uhyper, bool, string, opaque and rest", kind)
		}
	}
	return nil
}
