package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/eviction"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// leading are the roles that a Handover moves.
var leading = []string{"primary", "holder"}

// recorder records the steps in a simulated cluster.
type recorder struct {
	kind    simulation.Kind
	key     types.NamespacedName
	cluster *simulation.Cluster

	at       objects.Key   // the key of the object
	last     client.Object // the object as it was last stored
	steps    []Step
	leaders  map[string]string // pods with a leading role, and that role
	minReady int
	pods     []*corev1.Pod // the members while a change is recorded
	// blocked is true if budgets allowed no eviction at the beginning, or no pod was Ready, and blockedNow if they allow
	// none now.
	blocked, blockedNow bool
}

// before is the state at the beginning of a recording.
type before struct {
	pods   int
	claims map[types.UID]bool
}

// begin starts a recording.
func (r *recorder) begin() before {
	r.object()
	r.steps, r.leaders = nil, r.leading()
	r.minReady = r.ready()
	r.blockedNow = r.blocks()
	r.blocked = r.minReady == 0 || r.blockedNow
	return before{pods: len(r.members()), claims: r.claims()}
}

// end returns the steps since begin.
func (r *recorder) end() []Step {
	steps := number(slices.Clone(r.steps))
	if steps == nil {
		return []Step{}
	}
	return steps
}

// follow returns a function for Cluster.Changed that records, and then calls next.
func (r *recorder) follow(next func(*action.Action, client.Object, client.Object)) func(*action.Action, client.Object, client.Object) {
	return func(act *action.Action, was, is client.Object) {
		r.record(act, was, is)
		if next != nil {
			next(act, was, is)
		}
	}
}

// record adds the steps that a change of one object begins or ends.
func (r *recorder) record(act *action.Action, was, is client.Object) {
	r.pods = r.members()
	defer func() { r.pods = nil }()
	switch obj := either(was, is).(type) {
	case *corev1.Pod:
		if owner := r.object(); owner == nil || !r.kind.Owns(owner, obj) {
			return
		}
		r.pod(act, as[*corev1.Pod](was), as[*corev1.Pod](is))
		r.minReady = min(r.minReady, r.ready())
	case *corev1.PersistentVolumeClaim:
		r.created(act, was, is, CreateClaim, DeleteClaim)
	case *appsv1.StatefulSet:
		if r.controls(obj) {
			r.created(act, was, is, CreateVersion, DeleteVersion)
		}
	case *batchv1.Job:
		if runs(as[*batchv1.Job](is)) && !runs(as[*batchv1.Job](was)) {
			r.add(act, Step{Action: RunJob, Name: obj.Name})
		}
	}
	r.handovers(act)
	if r.blocked || !changesEvictions(either(was, is)) {
		return
	}
	r.blockedNow = r.blocks()
	if n := len(r.steps); n > 0 && r.blockedNow {
		r.steps[n-1].EvictionsBlocked = true
	}
}

// changesEvictions reports whether a change of an object can change which evictions are allowed.
func changesEvictions(object client.Object) bool {
	switch object.(type) {
	case *corev1.Pod, *policyv1.PodDisruptionBudget:
		return true
	}
	return false
}

// blocks reports whether budgets allow no eviction of any Ready pod of the object.
func (r *recorder) blocks() bool { return eviction.Blocked(r.cluster, r.members()) }

// approve makes the approval that the object waits for. It reports whether there is one.
func (r *recorder) approve() bool {
	approver, canWait := r.kind.(simulation.Approver)
	object := r.present()
	if !canWait || object == nil {
		return false
	}
	object = objects.Clone(object)
	approved := approver.Approve(object)
	if approved == "" {
		return false
	}
	r.add(nil, Step{Action: Approve, Name: approved})
	object.SetGeneration(object.GetGeneration() + 1)
	r.cluster.Put(object)
	return true
}

// either returns the present state of an object, or its last one.
func either(was, is client.Object) client.Object {
	if is != nil {
		return is
	}
	return was
}

// as returns an object as a type, or the zero value.
func as[T client.Object](obj client.Object) T {
	typed, _ := obj.(T)
	return typed
}

func runs(job *batchv1.Job) bool { return job != nil && !ptr.Deref(job.Spec.Suspend, false) }

// controls reports whether an object is a child of the object of the plan.
func (r *recorder) controls(child client.Object) bool {
	owner := r.object()
	return owner != nil && metav1.IsControlledBy(child, owner)
}

// created adds a step for an object that is new, or that begins to be deleted.
func (r *recorder) created(act *action.Action, was, is client.Object, create, remove Action) {
	switch {
	case was == nil:
		r.add(act, Step{Action: create, Name: is.GetName()})
	case was.GetDeletionTimestamp() == nil && (is == nil || is.GetDeletionTimestamp() != nil):
		r.add(act, Step{Action: remove, Name: was.GetName()})
	}
}

func (r *recorder) add(act *action.Action, step Step) {
	step.at, step.Ready, step.EvictionsBlocked = r.cluster.Now, r.ready(), r.blockedNow && !r.blocked
	if act != nil {
		step.Reason = act.Reason
	}
	r.steps = append(r.steps, step)
}

// pod records a change of a member.
func (r *recorder) pod(act *action.Action, was, is *corev1.Pod) {
	switch {
	case was == nil:
		r.podCreated(act, is)
	case !podstate.Terminating(was) && (is == nil || podstate.Terminating(is)):
		r.add(act, Step{Action: DeletePod, Name: was.Name, Role: r.kind.Role(r.object(), was), Node: was.Spec.NodeName,
			Changes: contents(was), gone: is == nil})
	case is == nil:
		if deleted := r.deletion(was.Name); deleted != nil {
			deleted.gone = true
		}
	default:
		if changes := updates(was, is); len(changes) > 0 {
			r.add(act, Step{Action: UpdatePod, Name: is.Name, Role: r.kind.Role(r.object(), is), Changes: changes})
		}
	}
	if is != nil && podstate.Ready(is) && (was == nil || !podstate.Ready(was)) {
		r.becameReady(is.Name)
	}
}

// podCreated makes a deletion of a pod of the same name a recreation.
func (r *recorder) podCreated(act *action.Action, pod *corev1.Pod) {
	if deleted := r.deletion(pod.Name); deleted != nil && deleted.gone {
		deleted.Action, deleted.Changes = RecreatePod, fieldsBetween(deleted.Changes, contents(pod))
		return
	}
	r.add(act, Step{Action: CreatePod, Name: pod.Name})
}

// deletion returns the last step that deletes a pod of that name; nil if there is none.
func (r *recorder) deletion(name string) *Step {
	for i := len(r.steps) - 1; i >= 0; i-- {
		if step := &r.steps[i]; step.Name == name && step.Action == DeletePod {
			return step
		}
	}
	return nil
}

// becameReady sets the number of Ready pods at the end of the step of a pod.
func (r *recorder) becameReady(name string) {
	for i := len(r.steps) - 1; i >= 0; i-- {
		if step := &r.steps[i]; step.Name == name && step.Action != Handover {
			step.Ready = r.ready()
			return
		}
	}
}

// handovers adds a step if a leading role has moved.
func (r *recorder) handovers(act *action.Action) {
	now := r.leading()
	if maps.Equal(now, r.leaders) {
		return
	}
	lost, got := missingIn(r.leaders, now), missingIn(now, r.leaders)
	roles := r.leaders
	r.leaders = now
	for _, pod := range lost {
		step := Step{Action: Handover, Name: pod, Role: roles[pod]}
		if begun := r.handover(func(s *Step) bool { return r.isBegunFor(s, pod, step.Role) }); begun != nil {
			begun.Name = pod
			continue
		}
		r.add(act, step)
	}
	for _, pod := range got {
		if r.returns(pod, now[pod]) {
			continue
		}
		if begun := r.handover(func(s *Step) bool { return s.To == "" && s.Role == now[pod] }); begun != nil {
			begun.To = pod
			continue
		}
		r.add(act, Step{Action: Handover, To: pod, Role: now[pod]})
	}
}

// isBegunFor reports whether a step gave a role to another pod just before a pod lost it. The status of an object and
// its pods are observed one after another.
func (r *recorder) isBegunFor(s *Step, pod, role string) bool {
	return s.Name == "" && s.To != pod && s.Role == role && r.cluster.Now.Sub(s.at) < sameHandover
}

// sameHandover is the max time between the two halves of a handover whose second half is observed first.
const sameHandover = 5 * time.Second

// returns removes the unfinished handover of a pod that gets its role back, for example after it was recreated. It
// reports whether there is one.
func (r *recorder) returns(pod, role string) bool {
	n := len(r.steps)
	r.steps = slices.DeleteFunc(r.steps, func(s Step) bool {
		return s.Action == Handover && s.Name == pod && s.To == "" && s.Role == role
	})
	return len(r.steps) < n
}

// handover returns the first handover that meets a condition; nil if there is none.
func (r *recorder) handover(meets func(*Step) bool) *Step {
	for i := range r.steps {
		if step := &r.steps[i]; step.Action == Handover && meets(step) {
			return step
		}
	}
	return nil
}

// missingIn returns the keys of all that others does not have, sorted.
func missingIn(all, others map[string]string) (missing []string) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if others[key] != all[key] {
			missing = append(missing, key)
		}
	}
	return missing
}

// leading returns the pods with a leading role.
func (r *recorder) leading() map[string]string {
	found := map[string]string{}
	object := r.object()
	for _, pod := range r.members() {
		if role := r.kind.Role(object, pod); slices.Contains(leading, role) {
			found[pod.Name] = role
		}
	}
	return found
}

// object returns the object; its last state if it was deleted, and nil if it never existed.
func (r *recorder) object() client.Object {
	if have := r.present(); have != nil {
		r.last = have
	}
	return r.last
}

// present returns the object, or nil if it does not exist.
func (r *recorder) present() client.Object {
	if r.at.Kind == "" {
		r.at = objects.Key{Kind: objects.KindOf(r.kind.New()), Namespace: r.key.Namespace, Name: r.key.Name}
	}
	return r.cluster.All[r.at]
}

// members returns the pods of the object.
func (r *recorder) members() (pods []*corev1.Pod) {
	object := r.object()
	if object == nil || r.pods != nil {
		return r.pods
	}
	for _, obj := range r.cluster.All {
		if pod, isPod := obj.(*corev1.Pod); isPod && r.kind.Owns(object, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// ready returns the number of Ready pods of the object.
func (r *recorder) ready() (n int) {
	for _, pod := range r.members() {
		if podstate.Ready(pod) && !podstate.Terminating(pod) {
			n++
		}
	}
	return n
}

// claims returns the UIDs of the claims that members mount.
func (r *recorder) claims() map[types.UID]bool {
	found := map[types.UID]bool{}
	for _, pod := range r.members() {
		for _, claim := range r.cluster.Claims(pod) {
			found[claim.UID] = true
		}
	}
	return found
}

// kept returns how many of the claims exist.
func (r *recorder) kept(claims map[types.UID]bool) (n int) {
	for _, obj := range r.cluster.All {
		if claims[obj.GetUID()] && obj.GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n
}

// summary counts steps.
func (r *recorder) summary(steps []Step, began before) Summary {
	s := Summary{Members: began.pods, MinReady: r.minReady}
	for _, step := range steps {
		switch step.Action {
		case CreatePod:
			s.PodsCreated++
		case DeletePod:
			s.PodsDeleted++
		case RecreatePod:
			s.PodsRecreated++
		case UpdatePod:
			s.PodsUpdated++
		case Handover:
			s.Handovers++
		case CreateClaim:
			s.ClaimsCreated++
		case DeleteClaim:
			s.ClaimsDeleted++
		}
	}
	s.ClaimsKept = r.kept(began.claims)
	return s
}

// contents returns the images of a pod as fields without a previous value.
func contents(pod *corev1.Pod) (fields []Field) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		fields = append(fields, Field{Path: c.Name + ".image", To: c.Image})
	}
	return fields
}

// fieldsBetween returns the differences between the contents of two pods.
func fieldsBetween(was, is []Field) (changed []Field) {
	old := map[string]string{}
	for _, f := range was {
		old[f.Path] = f.To
	}
	for _, f := range is {
		if old[f.Path] != f.To {
			changed = append(changed, Field{Path: f.Path, From: old[f.Path], To: f.To})
		}
	}
	return changed
}

// updates returns the fields of containers that were changed in place.
func updates(was, is *corev1.Pod) (changed []Field) {
	changed = fieldsBetween(contents(was), contents(is))
	for i := range is.Spec.Containers {
		if i >= len(was.Spec.Containers) {
			return changed
		}
		from, to := was.Spec.Containers[i].Resources, is.Spec.Containers[i].Resources
		if !apiequality.Semantic.DeepEqual(from, to) {
			changed = append(changed, Field{Path: is.Spec.Containers[i].Name + ".resources", From: compact(from), To: compact(to)})
		}
	}
	return changed
}

func compact(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
