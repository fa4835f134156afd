// Package mpa implements MPA (RFC 5044) and its enhanced connection set-up
// (RFC 6581).
package mpa
