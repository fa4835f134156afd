package congestion

import (
	"fmt"
	"strings"
)

// The names of controllers, in the order of [Names].
const (
	NameNone  = "none"
	NameReno  = "reno"
	NameCUBIC = "cubic"
)

// Names returns the names that [ByName] knows.
func Names() []string { return []string{NameNone, NameReno, NameCUBIC} }

// ByName returns what makes controllers of a kind, each with the default settings. The error
// is a [*NameError].
func ByName(name string) (func() Controller, error) {
	switch name {
	case NameNone:
		return None, nil
	case NameReno:
		return func() Controller { return NewReno(Config{}) }, nil
	case NameCUBIC:
		return func() Controller { return NewCUBIC(Config{}) }, nil
	}
	return nil, &NameError{Name: name}
}

// A NameError reports that there is no congestion control of a name.
type NameError struct{ Name string }

// Error says which ones there are.
func (e *NameError) Error() string {
	return fmt.Sprintf("there is no congestion control %q: choose one of %s", e.Name, strings.Join(Names(), ", "))
}
