package rpc

// An Error is the failure of an operation.
type Error struct {
	Op   string // the interface and the operation: "pt.ListMax"
	Code *Code  // that the call was aborted with, by either side; nil if there was none
	Err  error  // the cause; nil if the code says everything
}

func (e *Error) Error() string {
	switch {
	case e.Code == nil:
		return e.Op + ": " + e.Err.Error()
	case e.Err == nil || e.Code.Text != "" && e.remote():
		return e.Op + ": " + e.Code.Error()
	default:
		return e.Op + ": " + e.Code.Error() + ": " + e.Err.Error()
	}
}

// remote reports whether Err only says again what Code says: that the call was aborted.
func (e *Error) remote() bool {
	n, ok := AbortCode(e.Err)
	return ok && n == e.Code.Number
}

// Unwrap returns the code and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Code != nil {
		all = append(all, e.Code)
	}
	if e.Err != nil {
		all = append(all, e.Err)
	}
	return all
}

// failure makes an Error of one that a call has returned. Its code gets its name.
func (c *Codes) failure(op string, err error) error {
	n, ok := AbortCode(err)
	if !ok {
		return &Error{Op: op, Err: err}
	}
	code := c.Find(n)
	if code == nil {
		code = Standard.Find(n)
	}
	if code == nil {
		code = &Code{Number: n}
	}
	return &Error{Op: op, Code: code, Err: err}
}
