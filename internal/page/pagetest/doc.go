// Package pagetest looks at pages of package page in tests: in a real browser, without a window, and as text with what is
// compressed put in.
package pagetest
