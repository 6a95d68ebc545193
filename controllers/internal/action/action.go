// Package action holds writes as data, and the Runner, which is the only
// writer of a controller's children.
//
// A controller decides on actions without touching the cluster; the Runner
// carries them out. The String of an action is its log line and its line in a
// golden file.
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

// Verb says what an action does with its object.
type Verb string

// The verbs. Every Patch, Resize and Delete is bound to the UID of the object
// that was read: the API server refuses it for an object of the same name.
const (
	// Create creates Object. An object of that name with the same controller
	// owner and the same labels is taken for the answer of an earlier, lost
	// create.
	Create Verb = "create"
	// Try asks, by dry run, whether the API server would create Object; nothing is made,
	// and no name is used. It fails only where the create would be refused once the
	// object that has the name, and takes the room, is gone: that the name is taken, that
	// a quota is full, and that a webhook of the cluster takes no dry run say nothing. A full
	// quota fails it if the room of From, a pod that goes, is not enough.
	Try Verb = "try"
	// Patch sends the difference from From to Object.
	Patch Verb = "patch"
	// Resize sends the difference to the resize subresource of a pod.
	Resize Verb = "resize"
	// PatchStatus sends the difference to the status subresource, bound to the
	// resourceVersion that was read.
	PatchStatus Verb = "patch status of"
	// SetCondition sends the difference to the status subresource of a built-in
	// kind as a strategic merge, which leaves the conditions of others alone.
	SetCondition Verb = "set a condition of"
	// Delete deletes Object as it was read: it fails with a conflict if anybody touched
	// it since. One that was sent before the process froze may arrive when the object
	// is in use again.
	Delete Verb = "delete"
	// Exec begins Command in Object, which is its pod. It waits for nothing: what
	// came of the command is seen in a later world.
	Exec Verb = "exec in"
)

// labels are those of verbs that are more than one word.
var labels = map[Verb]string{PatchStatus: "patch_status", SetCondition: "set_condition", Exec: "exec"}

// Label is the verb as the label of a metric.
func (v Verb) Label() string { return cmp.Or(labels[v], string(v)) }

// Action is one write.
type Action struct {
	Verb Verb
	// Object is what to create, what to patch to, or what to delete.
	Object client.Object
	// From is the object as it was read; patches have it. Of a Try it is the pod that is
	// deleted before Object is created.
	From client.Object
	// Named has a Create be sent as an apply: the right to it can be bound to the name.
	// It is for an object that is known to be not there.
	Named bool
	// Command is what to run; only Exec has it.
	Command *podexec.Command
	// Unchanged binds a Patch or a Resize to the resourceVersion that was read too: it
	// fails with a conflict if anybody touched the object since. Lists of a Patch are then
	// patched as a whole, as custom resources need it.
	Unchanged bool
	// Rebase lets a PatchStatus be made again on the object as it is now, when
	// somebody changed it meanwhile but not its status: the spec, labels, or
	// annotations. It is for what was observed; what is decided must fit the object
	// that it was decided on.
	Rebase bool
	// Verify returns what is wrong with the answer of the API server; the chain ends if
	// there is something. An admission webhook or policy may change what is written, and
	// what comes next in the chain may rely on it. Optional.
	Verify func(answer metav1.Object) error
	// Reason is one CamelCase word for the event and the metric.
	Reason string
	// Detail completes the line for people. Optional.
	Detail string
}

// String is one line: verb, kind, name, reason, detail.
func (a Action) String() string {
	s := fmt.Sprintf("%s: %s", a.what(), a.Reason)
	if a.Detail != "" {
		s += ", " + a.Detail
	}
	return s
}

// what is done to what: verb, kind, name.
func (a Action) what() string {
	return fmt.Sprintf("%s %s %s", a.Verb, a.Kind(), a.Object.GetName())
}

// Kind returns the kind of the object, in lower case.
func (a Action) Kind() string { return kindOf(a.Object) }

// Chain is a list of actions run in order; the first that fails ends it.
type Chain []Action

// Step is a set of chains without order among them.
type Step []Chain

// Steps are run one after another; a failed chain ends them after its step.
type Steps []Step

// Strings lists the lines of all actions, a chain a line, in the order given.
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

// Outcome is an action and what the API server answered.
type Outcome struct {
	Action
	// Answer is the object as the API server returned it; nil after an error, but for one of
	// Verify.
	Answer client.Object
	// Err is nil when the action took effect.
	Err error
}

func kindOf(obj client.Object) string {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return strings.ToLower(m.Kind)
	}
	return strings.ToLower(reflect.TypeOf(obj).Elem().Name())
}
