// Package rnic is an emulated RNIC with verbs.
package rnic
