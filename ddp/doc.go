// Package ddp implements DDP, the Direct Data Placement Protocol (RFC 5041).
package ddp
