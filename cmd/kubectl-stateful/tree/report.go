// Package tree describes the state of an object of one of the kinds: as a report for programs, and
// as a tree for users.
package tree

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

// Report is the state of an object.
type Report struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is status.phase; a StatefulCluster has none.
	Phase string `json:"phase,omitempty"`
	// Summary is the state in numbers.
	Summary string `json:"summary"`
	// Observed reports whether the operator has observed the present spec.
	Observed bool `json:"observed"`
	// Deleting reports whether the object is being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Conditions are all conditions. The tree shows those that matter.
	Conditions []Condition `json:"conditions"`
	// Versions are the contents of the template that are in use.
	Versions []Version `json:"versions,omitempty"`
	// Members are the pods.
	Members []Member `json:"members"`
	// Lost are lost members, the last one first.
	Lost []string `json:"lost,omitempty"`
	// WaitsFor has a sentence for each reason to wait.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// Notes are other information for the user.
	Notes []string `json:"notes,omitempty"`
}

// Condition is a condition, and whether it reports a problem.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Matters reports whether the tree shows it.
	Matters bool `json:"matters"`
	good    bool
}

// Version is a content of the template.
type Version struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	Pods  string `json:"pods"`
	Notes string `json:"notes,omitempty"`
}

// Member is a pod.
type Member struct {
	Name    string  `json:"name"`
	Role    string  `json:"role,omitempty"`
	State   string  `json:"state"`
	Ready   bool    `json:"ready"`
	Version string  `json:"version,omitempty"`
	Node    string  `json:"node,omitempty"`
	Claims  []Claim `json:"claims,omitempty"`
	// Notes are other information about it.
	Notes []string `json:"notes,omitempty"`
}

// Claim is a claim of a member.
type Claim struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Size  string `json:"size,omitempty"`
	Class string `json:"storageClass,omitempty"`
}

// Of returns the state of a snapshot's object at that time.
func Of(s *snapshot.Snapshot, now time.Time) Report {
	state := kinds.StateOf(s.Object)
	r := Report{
		Kind: s.Kind.Kind, Namespace: s.Object.GetNamespace(), Name: s.Object.GetName(),
		Observed: state.ObservedGeneration >= s.Object.GetGeneration(),
		Deleting: s.Object.GetDeletionTimestamp() != nil,
		Members:  []Member{}, Conditions: []Condition{}, Notes: slices.Clone(s.Unread),
	}
	r.judge(state.Conditions)
	for i := range s.Pods {
		r.Members = append(r.Members, memberOf(s, &s.Pods[i]))
	}
	r.wait(s.Object.GetGeneration(), state.Conditions)
	switch o := s.Object.(type) {
	case *stcv1alpha1.StatefulCluster:
		r.cluster(s, o, now)
	case *rssv1alpha1.ReplicatedStatefulSet:
		r.replicated(s, o, now)
	case *estsv1alpha1.ExtendedStatefulSet:
		r.extended(s, o)
	case *ssnv1.StatefulSingleton:
		r.singleton(s, o, now)
	}
	return r
}

// goodWhenTrue are the conditions whose normal status is True. It is False for all others.
var goodWhenTrue = []string{"Available", "Ready", "Seeded"}

// alwaysShown are the conditions that the tree always shows.
var alwaysShown = []string{"Available"}

func (r *Report) judge(conditions []metav1.Condition) {
	for _, c := range conditions {
		good := (c.Status == metav1.ConditionTrue) == slices.Contains(goodWhenTrue, c.Type)
		told := c.Type == "Progressing" && c.Status == metav1.ConditionTrue // it is reported in WaitsFor
		r.Conditions = append(r.Conditions, Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, good: good,
			Matters: slices.Contains(alwaysShown, c.Type) || (!good && !told),
		})
	}
}

func (r *Report) wait(generation int64, conditions []metav1.Condition) {
	if !r.Observed {
		r.WaitsFor = append(r.WaitsFor, fmt.Sprintf("generation %d of the spec was not reconciled yet; check that the operator runs and watches this namespace", generation))
	}
	for _, c := range conditions {
		if c.Type == "Progressing" && c.Status == metav1.ConditionTrue {
			r.WaitsFor = append(r.WaitsFor, c.Reason+": "+c.Message)
		}
	}
}

func memberOf(s *snapshot.Snapshot, pod *corev1.Pod) Member {
	m := Member{Name: pod.Name, State: podState(pod), Ready: isReady(pod), Node: nodeState(s, pod)}
	for _, name := range snapshot.ClaimsOf(pod) {
		m.Claims = append(m.Claims, claimOf(s, name))
	}
	return m
}

func claimOf(s *snapshot.Snapshot, name string) Claim {
	claim, found := s.Claims[name]
	if !found && !s.Read("claims") {
		return Claim{Name: name, State: "unknown"}
	}
	if !found {
		return Claim{Name: name, State: "not found"}
	}
	c := Claim{Name: name, State: string(claim.Status.Phase)}
	if size, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok {
		c.Size = size.String()
	}
	if claim.Spec.StorageClassName != nil {
		c.Class = *claim.Spec.StorageClassName
	}
	if claim.DeletionTimestamp != nil {
		c.State = "Terminating"
	}
	return c
}

// nodeState returns the Node of a pod, with its problem.
func nodeState(s *snapshot.Snapshot, pod *corev1.Pod) string {
	name := pod.Spec.NodeName
	if name == "" {
		return ""
	}
	node := s.Node(name)
	switch {
	case node == nil && !s.Read("nodes"):
		return name
	case node == nil:
		return name + " (gone)"
	case Fenced(node):
		return name + " (out of service)"
	case !NodeReady(node):
		return name + " (unreachable)"
	case node.Spec.Unschedulable:
		return name + " (cordoned)"
	}
	return name
}

// NodeReady reports whether a Node is Ready.
func NodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Fenced reports whether an administrator has marked the machine of a Node as off.
func Fenced(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// podState returns the state of a pod as one word.
func podState(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := c.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating" {
			return waiting.Reason
		}
	}
	if isReady(pod) {
		return "Ready"
	}
	if pod.Status.Phase == corev1.PodRunning {
		return "not Ready"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	return string(pod.Status.Phase)
}

// ago formats the time since then.
func ago(now, then time.Time) string {
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// counted formats a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// list joins names, and appends how many more there are.
func list(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
