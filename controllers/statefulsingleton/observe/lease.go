package observe

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// readLease reads the Lease, and the rights of the pods on it, if they are used. Without the right to read them, no
// leased pod is started.
func (r *Reader) readLease(ctx context.Context, w *facts.World, key types.NamespacedName) error {
	if !w.UsesLease() {
		return nil
	}
	var lease coordinationv1.Lease
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	found := map[client.Object]bool{}
	named := types.NamespacedName{Namespace: key.Namespace, Name: children.LeaseName(key.Name)}
	for _, object := range []client.Object{&lease, &role, &binding} {
		err := r.Live.Get(ctx, named, object)
		switch {
		case apierrors.IsForbidden(err):
			w.LeaseProblem = r.notPermitted(err)
			return nil
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("get the Lease, or the rights on it: %w", err)
		case err == nil && !isOf(object, key.Name):
			w.LeaseProblem = foreign(object)
			return nil
		}
		found[object] = err == nil
	}
	if found[&binding] && isReplacedByHand(w, &binding) {
		w.LeaseProblem = foreign(&binding)
		return nil
	}
	if found[&lease] {
		w.Lease = &lease
	}
	if found[&role] {
		w.Role = &role
	}
	if found[&binding] {
		w.RoleBinding = &binding
	}
	if err := r.Leases.Follow(ctx, key); err != nil {
		return err
	}
	seen, version := r.Now(), "" // after the read, so that the time since then is never too long
	if w.Lease != nil {
		version = w.Lease.ResourceVersion
	}
	w.LeaseSince = r.Leases.Since(named, &r.Of(key).lease, version, seen)
	return nil
}

// notPermitted returns the notice about a missing right.
func (r *Reader) notPermitted(err error) engine.Notice {
	return engine.Notice{Reason: v1.ReasonFencingNotPermitted, Message: fencing.NotPermitted(err, r.Guard.Namespace)}
}

// isOf reports whether the operator has created an object for a StatefulSingleton. Only the operator can set the
// label of a Lease.
func isOf(object client.Object, singleton string) bool {
	have := object.GetLabels()
	return have[v1.LabelManagedBy] == v1.ManagedBy && have[v1.LabelSingleton] == singleton
}

// isReplacedByHand reports whether a RoleBinding grants another Role and does not belong to the object. The operator
// replaces only its own ones.
func isReplacedByHand(w *facts.World, binding *rbacv1.RoleBinding) bool {
	if w.Object == nil || !fencing.BindsAnotherRole(binding) {
		return false
	}
	return !owned.By(binding, w.Object, v1.GroupVersion.WithKind("StatefulSingleton"))
}

// foreign returns the notice about an object that another client has created.
func foreign(object client.Object) engine.Notice {
	kind, name := reflect.TypeOf(object).Elem().Name(), object.GetName()
	return engine.Notice{Reason: v1.ReasonFencingNotPermitted, Message: fmt.Sprintf(
		"%s %s was not created by the operator, which needs this name; delete it: kubectl -n %s delete %s %s", kind, name, object.GetNamespace(), strings.ToLower(kind), name)}
}
