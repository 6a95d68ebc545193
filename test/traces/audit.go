package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/auditlog"
)

const (
	nodeAccount = "system:node:"
	extraPrefix = "authentication.kubernetes.io/"
)

// changes are the verbs of requests that change an object.
var changes = []string{"create", "update", "patch", "delete"}

// concerned are parts of the lines that readAudit decodes.
var concerned = []string{singletonSuffix + `"`, v1alpha1.LeaseSuffix + `"`, `"resource":"pods"`, `"resource":"nodes"`}

// readAudit adds the events of an audit log to the trace.
func (t *trace) readAudit(name string, log io.Reader) error {
	return auditlog.Lines(log, concerned, func(n int, line []byte) error {
		var e auditv1.Event
		at := place{name, n}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s is not an event of an audit log: %w", at, err)
		}
		if isChange(&e) {
			if err := t.addEvent(at, &e); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
		return nil
	})
}

// isChange reports whether an event is a request that has changed an object.
func isChange(e *auditv1.Event) bool {
	if e.Stage != auditv1.StageResponseComplete || e.ObjectRef == nil || e.ResponseStatus == nil {
		return false
	}
	succeeded := e.ResponseStatus.Code/100 == 2
	return succeeded && slices.Contains(changes, e.Verb) && !strings.Contains(e.RequestURI, "dryRun=")
}

func (t *trace) addEvent(at place, e *auditv1.Event) error {
	switch e.ObjectRef.Resource {
	case "leases":
		return t.addWrite(at, e)
	case "pods":
		return t.addPod(at, e)
	case "nodes":
		return t.addNode(at, e)
	}
	return nil
}

// addWrite adds a write of a Lease. Its end is not a write: the next Lease of the name has another UID.
func (t *trace) addWrite(at place, e *auditv1.Event) error {
	name := e.ObjectRef.Namespace + "/" + e.ObjectRef.Name
	if e.Verb == "delete" {
		return nil
	}
	var object coordinationv1.Lease
	if err := decode(e.ResponseObject, &object); err != nil {
		return err
	}
	if object.Name != "" {
		name = object.Namespace + "/" + object.Name // a creation has no name in its reference
	}
	switch {
	case !isSingleton(name) && !isMember(name):
		return nil
	case object.ResourceVersion == "":
		t.bodiless++
		return nil
	case object.Labels[v1.LabelSingleton] == "" && object.Labels[v1alpha1.LabelLease] == "":
		return nil // another client has created it, and no agent accepts it
	}
	after, err := stateOf(&object)
	if err != nil {
		return err
	}
	bound, err := boundTo(e.RequestObject)
	if err != nil {
		return err
	}
	t.writes = append(t.writes, &write{
		place: at, lease: name, created: e.Verb == "create", by: requesterOf(e), bound: bound, after: after,
		received: e.RequestReceivedTimestamp.Time, completed: e.StageTimestamp.Time,
	})
	return nil
}

// decode decodes a body. It ignores one that is missing, and a JSON patch, which is a list.
func decode(object *runtime.Unknown, into any) error {
	if object == nil || len(object.Raw) == 0 || object.Raw[0] == '[' {
		return nil
	}
	return json.Unmarshal(object.Raw, into)
}

// boundTo returns the resourceVersion in the body of a request. It is 0 if there is none.
func boundTo(object *runtime.Unknown) (uint64, error) {
	var body struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := decode(object, &body); err != nil {
		return 0, err
	}
	if body.Metadata.ResourceVersion == "" {
		return 0, nil
	}
	return strconv.ParseUint(body.Metadata.ResourceVersion, 10, 64)
}

// identityOf returns the holderIdentity of a pod.
func identityOf(name, uid string) string { return name + "_" + uid }

func requesterOf(e *auditv1.Event) requester {
	r := requester{account: e.User.Username}
	name, uid := e.User.Extra[extraPrefix+"pod-name"], e.User.Extra[extraPrefix+"pod-uid"]
	if len(name) == 1 && len(uid) == 1 {
		r.pod = identityOf(name[0], uid[0])
	}
	return r
}

// stateOf returns the version of a Lease.
func stateOf(lease *coordinationv1.Lease) (state, error) {
	version, err := strconv.ParseUint(lease.ResourceVersion, 10, 64)
	if err != nil {
		return state{}, err
	}
	s := state{
		version: version, uid: string(lease.UID), holder: ptr.Deref(lease.Spec.HolderIdentity, ""), epoch: int64(ptr.Deref(lease.Spec.LeaseTransitions, 0)),
		next: lease.Annotations[v1.AnnotationNext], fenced: lease.Annotations[v1alpha1.AnnotationFenced],
		duration: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
	if lease.Spec.RenewTime != nil {
		s.renewed = lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
	}
	if lease.Spec.AcquireTime != nil {
		s.acquired = lease.Spec.AcquireTime.UTC().Format(time.RFC3339Nano)
	}
	if len(lease.OwnerReferences) > 0 {
		s.owner = string(lease.OwnerReferences[0].UID)
	}
	other := lease.DeepCopy()
	other.ResourceVersion, other.ManagedFields, other.Generation = "", nil, 0
	delete(other.Annotations, v1.AnnotationNext)
	delete(other.Annotations, v1alpha1.AnnotationFenced)
	if len(other.Annotations) == 0 {
		other.Annotations = nil
	}
	other.Spec = coordinationv1.LeaseSpec{Strategy: lease.Spec.Strategy, PreferredHolder: lease.Spec.PreferredHolder}
	rest, err := json.Marshal(other)
	s.rest = string(rest)
	return s, err
}

// addPod adds the proof that a pod has ended: its kubelet has reported its final phase, or has deleted it.
func (t *trace) addPod(at place, e *auditv1.Event) error {
	node, byKubelet := strings.CutPrefix(e.User.Username, nodeAccount)
	if !byKubelet {
		return nil
	}
	var body struct {
		metav1.ObjectMeta `json:"metadata"`
		Preconditions     metav1.Preconditions `json:"preconditions"` // of a deletion
		Status            corev1.PodStatus     `json:"status"`
	}
	if err := decode(e.RequestObject, &body); err != nil {
		return err
	}
	pod := e.ObjectRef.Namespace + "/" + e.ObjectRef.Name
	if uid := cmp.Or(body.UID, ptr.Deref(body.Preconditions.UID, "")); uid != "" {
		pod = e.ObjectRef.Namespace + "/" + identityOf(e.ObjectRef.Name, string(uid))
		t.homes[pod] = node
	}
	if e.Verb == "delete" || hasEnded(&body.Status) {
		t.endings = append(t.endings, &ending{place: at, at: e.RequestReceivedTimestamp.Time, pod: pod})
	}
	return nil
}

// hasEnded reports whether a kubelet has written that a pod has ended. If another client had written the phase, only the
// reason of a condition is new.
func hasEnded(status *corev1.PodStatus) bool {
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed {
		return true
	}
	return slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.ContainersReady && slices.Contains([]string{"PodCompleted", "PodFailed"}, c.Reason)
	})
}

// addNode adds the proof that no pod of a node runs: an administrator has stated that it is off, or it was deleted.
func (t *trace) addNode(at place, e *auditv1.Event) error {
	var node corev1.Node
	if err := decode(e.RequestObject, &node); err != nil {
		return err
	}
	isOff := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
	if isOff || e.Verb == "delete" {
		t.endings = append(t.endings, &ending{place: at, at: e.RequestReceivedTimestamp.Time, node: e.ObjectRef.Name})
	}
	return nil
}
