// Package plural writes counts with their nouns: 1 byte, 2 bytes.
package plural
