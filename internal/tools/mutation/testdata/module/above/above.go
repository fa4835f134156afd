// Package above uses calc.
package above
