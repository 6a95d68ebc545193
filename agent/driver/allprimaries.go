package driver

import "context"

// AllPrimaries is the part of a Driver of an application whose members are all primaries.
type AllPrimaries struct {
	// Why is the beginning of the error of a command that such an application does not have.
	Why string
}

// Secondary is not supported.
func (a AllPrimaries) Secondary(context.Context, []string) error { return a.refuse() }

// Promote is not supported.
func (a AllPrimaries) Promote(context.Context) error { return a.refuse() }

// Demote is not supported.
func (a AllPrimaries) Demote(context.Context) error { return a.refuse() }

func (a AllPrimaries) refuse() error {
	return Errorf(NotConfigured, "%s, and there are no commands secondary, promote and demote", a.Why)
}
