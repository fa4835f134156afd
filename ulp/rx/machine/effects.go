package machine

import "fmt"

// An Effect is something that the machine's owner must do.
type Effect struct {
	Kind EffectKind
	Call *Call // of Incoming and Changed
	Conn *Conn // of Freed
}

// An EffectKind is the kind of an effect.
type EffectKind uint8

// The effects.
const (
	Incoming EffectKind = iota // Call is of a client: serve it, or end it with Call.Abort
	Changed                    // Call may be read, or written, or has failed, where it could not be or had not
	Freed                      // a channel of Conn is free, or Conn has failed
)

func (k EffectKind) String() string {
	switch k {
	case Incoming:
		return "incoming"
	case Changed:
		return "changed"
	case Freed:
		return "freed"
	default:
		return fmt.Sprintf("effect %d", uint8(k))
	}
}

// Effects returns the effects since the last call, in order. The slice is valid until
// the next call of any method.
func (m *Machine) Effects() []Effect {
	if len(m.effects) == 0 {
		return nil
	}
	m.effects, m.given = m.given[:0], m.effects
	for _, e := range m.given {
		if e.Kind == Changed {
			e.Call.changed = false // the next change is another effect
		}
	}
	return m.given
}

func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }
