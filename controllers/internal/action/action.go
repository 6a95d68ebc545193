// Package action represents writes as data. Its Runner is the only writer of a controller's children.
//
// A controller decides on actions without side effects, and the Runner carries them out. The String of
// an action is used in the log and in golden files.
package action

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// Verb is the operation of an action.
type Verb string

// The verbs. Every Patch, Resize and Delete is bound to the UID of the object that was read: the API
// server rejects it for another object with the same name.
const (
	// Create creates Object. An existing object with the same name, controller owner and labels is
	// treated as the result of an earlier create whose response was lost.
	Create Verb = "create"
	// Try checks by dry run whether the API server would create Object. It creates nothing and uses no
	// name. It fails only if the create would still fail after the object with that name was deleted.
	// So it ignores errors about an existing name, an exceeded quota, and a webhook that does not
	// support dry run. It does fail if the quota would be exceeded even after the deletion of From,
	// which is a pod.
	Try Verb = "try"
	// Patch sends the difference between From and Object.
	Patch Verb = "patch"
	// Resize sends the difference to the resize subresource of a pod.
	Resize Verb = "resize"
	// PatchStatus sends the difference to the status subresource. It is bound to the resourceVersion
	// that was read.
	PatchStatus Verb = "patch status of"
	// SetCondition sends the difference to the status subresource of a built-in kind. It uses a
	// strategic merge patch, which keeps the conditions of others.
	SetCondition Verb = "set a condition of"
	// Delete deletes Object if it is unchanged since it was read, else it fails with a conflict. This
	// covers a delete that was sent before the process froze and arrives when the object is in use
	// again.
	Delete Verb = "delete"
	// Exec starts Command in the pod Object. It does not wait for the command: a later pass reads its
	// result.
	Exec Verb = "exec in"
)

// labels contains the labels of verbs with more than one word.
var labels = map[Verb]string{PatchStatus: "patch_status", SetCondition: "set_condition", Exec: "exec"}

// Label returns the verb as a label value of a metric.
func (v Verb) Label() string { return cmp.Or(labels[v], string(v)) }

// Action is one write.
type Action struct {
	Verb Verb
	// Object is the object to create or delete, or the wanted state of a patch.
	Object client.Object
	// From is the object that was read, for patches. For a Try, it is the pod that is deleted before
	// Object is created.
	From client.Object
	// Named sends a Create as server-side apply, so that the permission can be restricted to the name.
	// It is only for objects that are known to be missing.
	Named bool
	// Command is the command of an Exec.
	Command *podexec.Command
	// Unchanged also binds a Patch or Resize to the resourceVersion that was read: it fails with a
	// conflict if the object has changed since. A Patch then replaces lists as a whole, as required for
	// custom resources.
	Unchanged bool
	// Rebase lets a PatchStatus be retried on the current object after a conflict, if only its spec,
	// labels or annotations were changed, but not its status. It is for observations. Decisions must
	// fit the object on which they were based.
	Rebase bool
	// Verify returns an error if the response of the API server is not as required; the chain then
	// ends. An admission webhook or policy may change a write, and later actions of the chain may rely
	// on it. Optional.
	Verify func(answer metav1.Object) error
	// Reason is a CamelCase word for the event and the metric.
	Reason string
	// Detail is appended to the message. Optional.
	Detail string
}

// String returns the action as one line: verb, kind, name, reason, detail.
func (a Action) String() string {
	s := fmt.Sprintf("%s: %s", a.what(), a.Reason)
	if a.Detail != "" {
		s += ", " + a.Detail
	}
	return s
}

// what returns the verb, kind and name.
func (a Action) what() string {
	return fmt.Sprintf("%s %s %s", a.Verb, a.Kind(), a.Object.GetName())
}

// Kind returns the kind of the object in lower case.
func (a Action) Kind() string { return kindOf(a.Object) }

// Chain is a list of actions that run in order. It ends at the first error.
type Chain []Action

// Step is a set of independent chains.
type Step []Chain

// Steps run in order. If a chain fails, no later step runs.
type Steps []Step

// Strings returns the actions in order, one line per chain.
func (s Steps) Strings() []string {
	var lines []string
	for _, step := range s {
		for _, chain := range step {
			parts := make([]string, len(chain))
			for i, a := range chain {
				parts[i] = a.String()
			}
			lines = append(lines, strings.Join(parts, " > "))
		}
	}
	return lines
}

// Outcome is an action with the response of the API server.
type Outcome struct {
	Action
	// Answer is the object that the API server returned. It is nil after an error, except one of
	// Verify.
	Answer client.Object
	// Err is nil if the action succeeded.
	Err error
}

func kindOf(obj client.Object) string {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return strings.ToLower(m.Kind)
	}
	return strings.ToLower(reflect.TypeOf(obj).Elem().Name())
}
