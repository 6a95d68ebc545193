package observe

import (
	"context"
	"fmt"
	"reflect"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// rightsInterval is how often the rights of the pods on their Leases are read. foreignInterval is the same while
// another client's object has the name of one.
const (
	rightsInterval  = 10 * time.Minute
	foreignInterval = time.Minute
	// neededInterval is the same while a pod may need its rights soon.
	neededInterval = 5 * time.Second
)

// knownRights are the rights on the Leases of a set as they were last read.
type knownRights struct {
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	// wanted are the rights that were wanted then. until is when they are read again. It is zero if they were not as
	// wanted.
	wanted facts.LeaseRights
	until  time.Time
	read   time.Time // when they were read
}

// readRights reads the Role and the RoleBinding of the pods. A live view reads them only if they may not be as wanted,
// and if a pod may need them soon. Otherwise those of the last read are reported, and not written.
func (r *Reader) readRights(ctx context.Context, w *facts.World, from engine.View) error {
	f := &w.Fencing
	if f.Leases == nil {
		return nil
	}
	known, wanted := &r.MemoryOf(w.Set).rights, w.LeaseRights()
	f.Role, f.RoleBinding = known.role, known.binding
	isNeeded, age := w.NeedsRightsSoon(), r.Now().Sub(known.read)
	isOutdated := !r.Now().Before(known.until) || !reflect.DeepEqual(wanted, known.wanted)
	f.RightsAreDue = isOutdated || (isNeeded && age >= neededInterval)
	mayRead := f.RightsAreDue || isNeeded
	if !from.Live || !mayRead {
		return nil
	}
	key := types.NamespacedName{Namespace: w.Set.Namespace, Name: children.RightsName(w.Set)}
	role, err := Find[rbacv1.Role](ctx, from, key)
	if err == nil {
		f.RoleBinding, err = Find[rbacv1.RoleBinding](ctx, from, key)
	}
	if apierrors.IsForbidden(err) {
		f.Problem = r.notPermitted(err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the rights on the Leases: %w", err)
	}
	f.Role, f.ReadRights = role, true
	*known = knownRights{role: f.Role, binding: f.RoleBinding, wanted: wanted, until: readAgain(w, r.Now()), read: r.Now()}
	return nil
}

// readAgain returns when the rights that were read now are read again. It is zero if they are not as wanted.
func readAgain(w *facts.World, now time.Time) time.Time {
	role, binding, wanted := w.Fencing.Role, w.Fencing.RoleBinding, w.LeaseRights()
	isForeign := (role != nil && !w.Ours(role)) || (binding != nil && !w.Ours(binding))
	switch {
	case isForeign:
		return now.Add(foreignInterval)
	case len(wanted.Pods) == 0 && role == nil && binding == nil:
		return now.Add(rightsInterval)
	case len(wanted.Pods) == 0, role == nil, binding == nil, fencing.BindsAnotherRole(binding):
		return time.Time{}
	case !apiequality.Semantic.DeepEqual(role.Rules, children.BuildLeaseRole(w.Set, wanted.Pods).Rules),
		!apiequality.Semantic.DeepEqual(binding.Subjects, children.BuildLeaseRoleBinding(w.Set, wanted.Accounts).Subjects):
		return time.Time{}
	}
	return now.Add(rightsInterval)
}
