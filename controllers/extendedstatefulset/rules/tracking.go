package rules

import "github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"

// keepTracking adds wanted owner references and removes all others. It removes them before the object
// and its finalizer are deleted. Children with an owner reference to the set are deleted by the garbage
// collector; claims are kept for the user.
func keepTracking(f *facts.Facts, p *Plan) {
	t := f.Tracking
	if t == nil {
		return
	}
	if t.NeedsFinalizer() {
		p.Do(t.Finalizer(true))
	}
	p.Do(t.Chains()...)
	if t.NeedsNoFinalizer() {
		p.Do(t.Finalizer(false))
	}
}
