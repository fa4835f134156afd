// Package rdmap implements RDMAP (RFC 5040) and its extensions (RFC 7306).
package rdmap
