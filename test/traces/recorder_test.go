package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

const (
	recordedOperator = "system:serviceaccount:stateful-operator-system:stateful-operator-controller-manager"
	recordedKubelet  = nodeAccount + "node-1"
	recordedSeconds  = 15
)

// recorder writes a trace as an API server and kubelets do. A simulated operator and its agents obey the model.
type recorder struct {
	*rand.Rand
	t        *testing.T
	folder   string
	now      time.Time
	revision uint64
	audit    []byte
	leases   map[string]*coordinationv1.Lease
	logs     map[string][]byte
	restarts map[string]int
	pods     int
}

func newRecorder(t *testing.T, seed uint64) *recorder {
	return &recorder{
		Rand: rand.New(rand.NewPCG(seed, 1)), t: t, folder: t.TempDir(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), revision: 100,
		leases: map[string]*coordinationv1.Lease{}, logs: map[string][]byte{}, restarts: map[string]int{},
	}
}

func (r *recorder) pass(d time.Duration) { r.now = r.now.Add(d) }

// aMoment lets some milliseconds pass.
func (r *recorder) aMoment() { r.pass(time.Duration(5+r.IntN(40)) * time.Millisecond) }

func (r *recorder) raw(object any) *runtime.Unknown {
	r.t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		r.t.Fatal(err)
	}
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}
}

// event adds a request that has succeeded to the audit log.
func (r *recorder) event(verb, resource, namespace, name string, user authenticationv1.UserInfo, request, response any) {
	r.t.Helper()
	e := auditv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "audit.k8s.io/v1", Kind: "Event"}, Level: auditv1.LevelRequestResponse, Stage: auditv1.StageResponseComplete,
		Verb: verb, User: user, ObjectRef: &auditv1.ObjectReference{Resource: resource, Namespace: namespace, Name: name},
		ResponseStatus: &metav1.Status{Code: 200}, RequestReceivedTimestamp: metav1.NewMicroTime(r.now), StageTimestamp: metav1.NewMicroTime(r.now.Add(2 * time.Millisecond)),
	}
	if request != nil {
		e.RequestObject = r.raw(request)
	}
	if response != nil {
		e.ResponseObject = r.raw(response)
	}
	text, err := json.Marshal(e)
	if err != nil {
		r.t.Fatal(err)
	}
	r.audit = append(append(r.audit, text...), '\n')
	r.pass(3 * time.Millisecond)
}

var byOperator = authenticationv1.UserInfo{Username: recordedOperator, Extra: map[string]authenticationv1.ExtraValue{
	extraPrefix + "pod-name": {"stateful-operator-1"}, extraPrefix + "pod-uid": {"0001"}}}

// recordedPod is a pod with an agent.
type recordedPod struct{ name, uid string }

func (p recordedPod) identity() string { return identityOf(p.name, p.uid) }

func (p recordedPod) user() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: "system:serviceaccount:app:default", Extra: map[string]authenticationv1.ExtraValue{
		extraPrefix + "pod-name": {p.name}, extraPrefix + "pod-uid": {p.uid}}}
}

// newPod returns a pod with that name, or with a new one.
func (r *recorder) newPod(name string) recordedPod {
	r.pods++
	if name == "" {
		name = fmt.Sprintf("mailer-%d", r.pods)
	}
	return recordedPod{name, fmt.Sprintf("00000000-0000-0000-0000-%012d", r.pods)}
}

// create lets the operator create a Lease.
func (r *recorder) create(name string) {
	r.revision += uint64(1 + r.IntN(9))
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name, UID: types.UID("lease-" + strconv.FormatUint(r.revision, 10)),
			Labels: map[string]string{v1.LabelSingleton: "mailer"}, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSingleton", Name: "mailer", UID: "owner"}}},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(recordedSeconds)), LeaseTransitions: ptr.To(int32(0))},
	}
	l.ResourceVersion = strconv.FormatUint(r.revision, 10)
	r.leases[name] = l
	r.event("create", "leases", "app", "", byOperator, l, l)
}

// patch lets a user change a Lease, bound to its version.
func (r *recorder) patch(name string, user authenticationv1.UserInfo, change func(l *coordinationv1.Lease)) {
	next := r.leases[name].DeepCopy()
	request := map[string]any{"metadata": map[string]any{"resourceVersion": next.ResourceVersion}}
	change(next)
	r.revision += uint64(1 + r.IntN(9))
	next.ResourceVersion = strconv.FormatUint(r.revision, 10)
	r.leases[name] = next
	r.event("patch", "leases", "app", name, user, request, next)
}

func (r *recorder) epoch(name string) int32 { return *r.leases[name].Spec.LeaseTransitions }

// assign lets the operator assign a Lease to a pod, with the next epoch.
func (r *recorder) assign(name string, to recordedPod) {
	now := metav1.NewMicroTime(r.now)
	r.patch(name, byOperator, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.AcquireTime, l.Spec.RenewTime = ptr.To(to.identity()), &now, nil
		l.Spec.LeaseTransitions = ptr.To(*l.Spec.LeaseTransitions + 1)
		delete(l.Annotations, v1.AnnotationNext)
	})
}

// free lets the operator remove the holder. fenced is the container that has ended.
func (r *recorder) free(name, fenced string) {
	r.patch(name, byOperator, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity = nil
		delete(l.Annotations, v1.AnnotationNext)
		if fenced != "" {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, v1alpha1.AnnotationFenced, fenced)
		}
	})
}

func (r *recorder) name(name, next string) {
	r.patch(name, byOperator, func(l *coordinationv1.Lease) {
		delete(l.Annotations, v1.AnnotationNext)
		if next != "" {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, v1.AnnotationNext, next)
		}
	})
}

func (r *recorder) renew(name string, by recordedPod) {
	now := metav1.NewMicroTime(r.now)
	r.patch(name, by.user(), func(l *coordinationv1.Lease) { l.Spec.RenewTime = &now })
}

// renewFor lets a pod renew a Lease every third of its duration.
func (r *recorder) renewFor(name string, by recordedPod, count int) {
	for range count {
		r.pass(recordedSeconds * time.Second / 3)
		r.renew(name, by)
	}
}

func (r *recorder) handOver(name string, by recordedPod, to string) {
	now := metav1.NewMicroTime(r.now)
	r.patch(name, by.user(), func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.LeaseTransitions, l.Spec.AcquireTime, l.Spec.RenewTime = &to, ptr.To(*l.Spec.LeaseTransitions+1), &now, &now
		delete(l.Annotations, v1.AnnotationNext)
	})
}

// ends lets the kubelet report the end of a pod, and delete it.
func (r *recorder) ends(p recordedPod) {
	r.event("patch", "pods", "app", p.name, authenticationv1.UserInfo{Username: recordedKubelet},
		map[string]any{"metadata": map[string]any{"uid": p.uid}, "status": map[string]any{"phase": "Succeeded"}}, nil)
}

func (r *recorder) file(p recordedPod) string {
	return filepath.Join("node-1", "log", "pods", "app_"+p.name+"_"+p.uid, "main", strconv.Itoa(r.restarts[p.uid])+".log")
}

// restart begins the log of another container of a pod.
func (r *recorder) restart(p recordedPod) { r.restarts[p.uid]++ }

// log writes a line of an agent.
func (r *recorder) log(p recordedPod, format string, args ...any) {
	line := fmt.Sprintf("%s stderr F %s agent run: %s\n", r.now.Add(time.Millisecond).Format(time.RFC3339Nano), r.now.Format(agentTime), fmt.Sprintf(format, args...))
	r.logs[r.file(p)] = append(r.logs[r.file(p)], line...)
	r.pass(time.Millisecond)
}

// print writes a line of a program.
func (r *recorder) print(p recordedPod, text string) {
	line := fmt.Sprintf("%s stdout F %s\n", r.now.Format(time.RFC3339Nano), text)
	r.logs[r.file(p)] = append(r.logs[r.file(p)], line...)
	r.pass(time.Millisecond)
}

func (r *recorder) waits(name string, p recordedPod) {
	r.log(p, "waiting for Lease app/%s as %s", name, p.identity())
}

// starts lets the agent renew the Lease that names it, and start its program.
func (r *recorder) starts(name string, p recordedPod) {
	r.aMoment()
	r.renew(name, p)
	r.aMoment()
	r.log(p, "holds Lease app/%s (epoch %d) after 1.234s: starts the program", name, r.epoch(name))
	r.print(p, "hello")
}

// save writes the files, and returns their folder.
func (r *recorder) save() string {
	files := maps.Clone(r.logs)
	files[filepath.Join("logs", "audit.log")] = r.audit
	for name, text := range files {
		path := filepath.Join(r.folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	return r.folder
}

func (r *recorder) uid(name string) types.UID { return types.UID(name) }

// unlogged makes requests that are not in the audit log.
func (r *recorder) unlogged(requests func()) {
	size := len(r.audit)
	requests()
	r.audit = r.audit[:size]
}

// rewrite changes the Lease that the last event has created.
func (r *recorder) rewrite(change func(l *coordinationv1.Lease)) {
	r.t.Helper()
	lines := bytes.SplitAfter(r.audit, []byte("\n"))
	last := len(lines) - 2
	var e auditv1.Event
	if err := json.Unmarshal(lines[last], &e); err != nil {
		r.t.Fatal(err)
	}
	var created coordinationv1.Lease
	if err := json.Unmarshal(e.ResponseObject.Raw, &created); err != nil {
		r.t.Fatal(err)
	}
	l := r.leases[created.Name].DeepCopy()
	change(l)
	r.leases[created.Name] = l
	e.RequestObject, e.ResponseObject = r.raw(l), r.raw(l)
	text, err := json.Marshal(e)
	if err != nil {
		r.t.Fatal(err)
	}
	r.audit = append(bytes.Join(lines[:last], nil), append(text, '\n')...)
}
