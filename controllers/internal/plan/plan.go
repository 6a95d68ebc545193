// Package plan computes the effects of a change of an object. It runs the operator in a simulated cluster that
// starts with the live objects, and records what happens to pods and claims.
package plan

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Patience is how long a simulation continues without a change: pauses between members, and deadlines of a
// rollout are shorter. The time is simulated.
const Patience = 2 * time.Hour

// Input is a change, and the state that it starts from.
type Input struct {
	Kind simulation.Kind
	// Key is the key of the object whose operator is simulated.
	Key types.NamespacedName
	// Live are the live objects.
	Live Loaded
	// Change is the change.
	Change Change
	// Approved assumes each approval that the change waits for.
	Approved bool
	// Now is the present time.
	Now time.Time
}

// Plan has the effects of a change.
type Plan struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// New is true if the object does not exist yet.
	New bool `json:"new,omitempty"`
	// Deleted is true if the change deletes the object.
	Deleted bool `json:"deleted,omitempty"`
	// Drain is the name of the Node that the change drains.
	Drain string `json:"drain,omitempty"`
	// Changes are the changed fields of the object.
	Changes []Field `json:"changes"`
	// InProgress are the steps that happen without the change, before it.
	InProgress []Step `json:"inProgress"`
	// Steps are the steps after the change, in the order in which they begin.
	Steps []Step `json:"steps"`
	// Summary counts the steps.
	Summary Summary `json:"summary"`
	// State is the state at the end: Complete, Stopped or Waiting.
	State State `json:"state"`
	// Reason and Message are those of condition Stalled or Reconciling, if the state is not Complete.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Unchanged is true if the object was in this state, for this reason, before the change.
	Unchanged bool `json:"unchanged,omitempty"`
	// Blocked has a sentence for each pod that a drain cannot evict.
	Blocked []string `json:"blocked,omitempty"`
	// Unknown has a sentence for each thing that the plan cannot know.
	Unknown []string `json:"unknown"`
}

// State is the state of an object at the end of a plan.
type State string

const (
	// Complete means that the object is Ready or deleted.
	Complete State = "Complete"
	// Stopped means that the object is Stalled, and requires manual intervention.
	Stopped State = "Stopped"
	// Waiting means that the object waits for something that does not happen in the simulated cluster.
	Waiting State = "Waiting"
)

// Field is a changed field.
type Field struct {
	// Path is the path of the field, for example spec.replicas.
	Path string `json:"path"`
	// From and To are its values as JSON. An empty string means that the field is not set.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Summary has the numbers of a plan.
type Summary struct {
	PodsCreated   int `json:"podsCreated"`
	PodsDeleted   int `json:"podsDeleted"`
	PodsRecreated int `json:"podsRecreated"`
	PodsUpdated   int `json:"podsUpdatedInPlace"`
	Handovers     int `json:"handovers"`
	ClaimsCreated int `json:"claimsCreated"`
	ClaimsDeleted int `json:"claimsDeleted"`
	ClaimsKept    int `json:"claimsKept"`
	// Members is the number of pods of the object before the change, and MinReady the smallest number of
	// pods that are Ready at the same time, from the change on.
	Members  int `json:"members"`
	MinReady int `json:"minReady"`
}

// Make simulates a change. It returns an error if the changed object cannot be compared.
func Make(in Input) (*Plan, error) {
	c := simulation.New(in.Now)
	c.UIDPrefix, c.Unlisted = "planned-", in.Live.Unlisted
	for _, object := range in.Live.Objects {
		c.Put(seen(object))
	}
	r := &recorder{kind: in.Kind, key: in.Key, cluster: c}
	p := &Plan{Kind: objects.KindOf(in.Kind.New()), Namespace: in.Key.Namespace, Name: in.Key.Name,
		Deleted: in.Change.Deletes, Drain: in.Change.Drains, Changes: []Field{}, InProgress: []Step{}, Unknown: append([]string{}, in.Live.Unread...)}
	var operator simulation.Operator
	start := func() {
		operator = in.Kind.Start(c, in.Key)
		c.Changed = r.follow(c.Changed)
	}
	old := r.object()
	if p.New = old == nil; !p.New {
		start()
		r.begin()
		simulation.Run(c, operator, Patience)
		for in.Approved && r.approve() { // it waited for this approval before the change
			simulation.Run(c, operator, Patience)
		}
		p.InProgress = r.end()
	}
	was, reasonBefore, _ := stateOf(r.present(), true)
	began := r.begin()
	in.Change.Do(c)
	if operator == nil {
		start()
	}
	operator = with(operator, in.Change.moves(c))
	settled := simulation.Run(c, operator, Patience)
	for in.Approved && r.approve() {
		settled = simulation.Run(c, operator, Patience)
	}
	p.Steps = r.end()
	p.Summary = r.summary(p.Steps, began)
	state, reason, message := stateOf(r.present(), settled)
	p.Unchanged = !p.New && state != Complete && state == was && reason == reasonBefore
	p.State, p.Reason, p.Message = state, reason, message
	if in.Change.Blocked != nil {
		p.Blocked = in.Change.Blocked(r.members(), c)
	}
	return p, in.Change.diff(p, old)
}

// extended is an operator with further moves.
type extended struct {
	simulation.Operator
	more func() []func()
}

func with(o simulation.Operator, more func() []func()) simulation.Operator { return extended{o, more} }

// Moves returns the moves of the operator's cluster, and the further ones.
func (e extended) Moves() []func() { return append(e.Operator.Moves(), e.more()...) }

// pvcProtection is the finalizer of claims that the controller manager removes when no pod mounts them.
const pvcProtection = "kubernetes.io/pvc-protection"

// seen returns a live object as simulated kubelets understand it. A container of a real pod can show another
// name of its image, for example docker.io/library/redis:8 for redis:8.
func seen(object client.Object) client.Object {
	if claim, isClaim := object.(*corev1.PersistentVolumeClaim); isClaim {
		claim = claim.DeepCopy() // the simulated cluster itself keeps claims that pods mount
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == pvcProtection })
		return claim
	}
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return object
	}
	if observed := pod.Status.ObservedGeneration; observed != 0 && observed != pod.Generation {
		return object // its kubelet still has to act
	}
	pod = pod.DeepCopy()
	for i := range pod.Status.ContainerStatuses {
		for _, container := range pod.Spec.Containers {
			if status := &pod.Status.ContainerStatuses[i]; status.Name == container.Name && status.ImageID != "" {
				status.Image = container.Image
			}
		}
	}
	pod.Status.ObservedGeneration = pod.Generation
	return pod
}

// stateOf returns the state of an object at the end, from its conditions.
func stateOf(object client.Object, settled bool) (state State, reason, message string) {
	if object == nil {
		return Complete, "", ""
	}
	conditions := conditionsOf(object)
	for _, one := range []struct {
		kind  string
		state State
	}{{"Stalled", Stopped}, {"Reconciling", Waiting}} {
		for _, c := range conditions {
			if c.Type == one.kind && c.Status == metav1.ConditionTrue {
				return one.state, c.Reason, c.Message
			}
		}
	}
	if !settled {
		return Waiting, "NotAtRest", "the simulated operator does not come to rest"
	}
	return Complete, "", ""
}

// conditionsOf returns status.conditions of an object.
func conditionsOf(object client.Object) []metav1.Condition {
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	var read struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if json.Unmarshal(text, &read) != nil {
		return nil
	}
	return read.Status.Conditions
}
