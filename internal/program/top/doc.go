// Package top shows what the RNICs in running processes do: `urnic top` is a shell around it.
//
// A [Monitor] asks the processes by package rnicinfo, again and again, and turns the
// difference of two reports into rates. A [Round] is what it has found, and can be written as
// text, JSON or Prometheus metrics. What processes report is not trusted: text is escaped, and
// lists are bounded.
package top
