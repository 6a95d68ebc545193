package statefulcluster

import (
	"encoding/json"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
)

// labelRevision is the pod label with the name of the pod's ControllerRevision, as in StatefulSet.
const labelRevision = appsv1.ControllerRevisionHashLabelKey

// revisionData is the content of a ControllerRevision: everything that the pod and the claims of a
// member are built from.
type revisionData struct {
	Template             corev1.PodTemplateSpec         `json:"template"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	ServiceName          string                         `json:"serviceName,omitempty"`
}

// recorded returns the part of a spec that a revision records.
func recorded(s *v1alpha1.StatefulClusterSpec) revisionData {
	return revisionData{Template: s.Template, VolumeClaimTemplates: s.VolumeClaimTemplates, ServiceName: s.ServiceName}
}

// dataOf decodes a revision. It returns false if rev is nil or cannot be decoded.
func dataOf(rev *appsv1.ControllerRevision) (revisionData, bool) {
	var data revisionData
	if rev == nil || json.Unmarshal(rev.Data.Raw, &data) != nil {
		return revisionData{}, false
	}
	return data, true
}

func revisionOf(pod *corev1.Pod) string { return pod.Labels[labelRevision] }

// named returns the existing revision with that name, or nil.
func (w *world) named(name string) *appsv1.ControllerRevision {
	return revision.ByName(w.revisions, name)
}

// revisionFor returns the revision with that name, or the target revision if it does not exist.
func (f *facts) revisionFor(name string) *appsv1.ControllerRevision {
	if rev := f.named(name); rev != nil {
		return rev
	}
	return f.target
}

// revisionForNew returns the revision of the next new member, given those already planned. It is
// the target revision, except while a partition keeps members at the current revision and too few
// members have it.
func (f *facts) revisionForNew(made births) *appsv1.ControllerRevision {
	current := f.named(f.set.Status.CurrentRevision)
	if current == nil || !f.rolling() || current.Name == f.target.Name {
		return f.target
	}
	if made.old+f.countKeeping(current.Name, made) < f.partition() {
		return current
	}
	return f.target
}

// countKeeping returns the number of members that have a revision and are not being replaced.
func (f *facts) countKeeping(revision string, made births) int {
	n := 0
	for _, m := range f.members {
		goes := m.terminating() || made.replaced[m.name()] || f.leaves(m)
		if m.revision() == revision && !goes {
			n++
		}
	}
	return n
}

// buildRevision builds the revision of the spec, with a number above those of the others.
func buildRevision(s settings, others []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	return hashedAgain(s, others, 0)
}

// hashedAgain builds the revision of the spec with a different hash in its name. n is the number of
// other templates found with the same hash.
func hashedAgain(s settings, others []*appsv1.ControllerRevision, n int32) *appsv1.ControllerRevision {
	rev, err := revision.New(s.set.Name, string(s.set.UID), recorded(&s.set.Spec),
		ptr.Deref(s.set.Status.CollisionCount, 0)+n, others)
	if err != nil { // cannot fail: the spec was decoded from JSON
		panic(err)
	}
	rev.Namespace = s.set.Namespace
	rev.Labels = clusterLabels(s)
	rev.OwnerReferences = []metav1.OwnerReference{owner(s)}
	return rev
}

// buildPod builds the pod of the member with that id.
func buildPod(s settings, rev *appsv1.ControllerRevision, id string) *corev1.Pod {
	data, ok := dataOf(rev)
	if !ok {
		data = recorded(&s.set.Spec)
	}
	pod := &corev1.Pod{ObjectMeta: *data.Template.ObjectMeta.DeepCopy(), Spec: *data.Template.Spec.DeepCopy()}
	pod.Name, pod.GenerateName, pod.Namespace = s.nameOf(id), "", s.set.Namespace
	pod.Labels = templateLabels(s, data)
	maps.Copy(pod.Labels, memberLabels(s, id))
	pod.Labels[labelRevision] = rev.Name
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner(s)}
	if data.ServiceName != "" {
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, data.ServiceName
	}
	claim.Mount(&pod.Spec, s.set.Spec.VolumeClaimTemplates, func(template string) string {
		return claim.Name(s.set.Name, template, id)
	})
	return pod
}

// controls reports whether the set is the controller of a child.
func controls(set *v1alpha1.StatefulCluster, child metav1.Object) bool {
	return owned.By(child, set, v1alpha1.GroupVersion.WithKind("StatefulCluster"))
}

// births are the new members that a plan creates.
type births struct {
	// ids are unused member ids. Ids on record come first.
	ids []string
	// replaced holds the names of the members whose slots are filled.
	replaced map[string]bool
	// old is the number of new members that get the current revision instead of the target.
	old int
}

// succession is the slot that a new member fills.
type succession struct {
	replaces     string
	replacements int
	// ahead is the event text about the members that leave after the new member is available; "" if
	// there are none.
	ahead string
}

// successorOf returns the succession for the slot of m. It counts on from the replacements of m
// unless m settled down.
func successorOf(w *world, m *member) succession {
	n := 1
	if !settledDown(w, m) {
		n += m.replacements()
	}
	return succession{replaces: m.name(), replacements: n}
}

// next takes an unused id and returns the chain that creates a member with it. The pod is created
// before its claims, so that a crash in between leaves a pod whose missing claims can still be
// created.
func (b *births) next(f *facts, s succession) action.Chain {
	id := b.ids[0]
	b.ids = b.ids[1:]
	b.replaced[s.replaces] = true
	rev := f.revisionForNew(*b)
	if rev.Name != f.target.Name {
		b.old++
	}
	pod := buildPod(f.settings, rev, id)
	reason, detail := reasonMissing, s.ahead
	if s.replaces != "" {
		reason, detail = reasonReplaced, "in place of "+s.replaces
		pod.Annotations[v1alpha1.AnnotationReplaces] = s.replaces
		pod.Annotations[v1alpha1.AnnotationReplacements] = strconv.Itoa(s.replacements)
	}
	chain := action.Chain{{Verb: action.Create, Object: pod, Reason: reason, Detail: detail}}
	if len(f.offers.given[id]) > 0 {
		return append(chain, onGivenClaims(f, pod, id)...)
	}
	for i := range f.set.Spec.VolumeClaimTemplates {
		chain = append(chain, action.Action{Verb: action.Create, Reason: reasonClaim,
			Object: buildClaim(f.settings, &f.set.Spec.VolumeClaimTemplates[i], id)})
	}
	return chain
}

func buildClaim(s settings, t *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	c := t.DeepCopy()
	c.Name, c.GenerateName, c.Namespace = claim.Name(s.set.Name, t.Name, id), "", s.set.Namespace
	c.Status = corev1.PersistentVolumeClaimStatus{}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	if s.set.Spec.Selector != nil {
		maps.Copy(c.Labels, s.set.Spec.Selector.MatchLabels)
	}
	maps.Copy(c.Labels, memberLabels(s, id))
	c.OwnerReferences = nil
	if s.deletesClaims() {
		c.OwnerReferences = []metav1.OwnerReference{claimOwner(s)}
	}
	return c
}

// buildBudget builds the PodDisruptionBudget, which allows maxConcurrent disruptions. The value is
// a number, because a budget rounds percentages up. It selects pods by the operator's label, so
// that a pod of another owner cannot use it up. With onEviction ReplaceFirst it allows no
// disruption, even while the set has more members than replicas: the operator then decides which
// member is retired.
func buildBudget(s settings, wanted int) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: s.set.Name, Namespace: s.set.Namespace,
			Labels: clusterLabels(s), OwnerReferences: []metav1.OwnerReference{owner(s)}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(int32(s.maxConcurrent()))),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelClusterUID: string(s.set.UID)}},
		},
	}
	if s.replacesFirst() {
		budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, ptr.To(intstr.FromInt32(int32(wanted)))
	}
	return budget
}

// templateLabels returns the labels of the template, or those of the selector if the template has
// none.
func templateLabels(s settings, data revisionData) map[string]string {
	labels := maps.Clone(data.Template.Labels)
	if len(labels) == 0 && s.set.Spec.Selector != nil {
		labels = maps.Clone(s.set.Spec.Selector.MatchLabels)
	}
	if labels == nil {
		labels = map[string]string{}
	}
	return labels
}

func clusterLabels(s settings) map[string]string {
	return map[string]string{v1alpha1.LabelCluster: s.set.Name, v1alpha1.LabelClusterUID: string(s.set.UID)}
}

func memberLabels(s settings, id string) map[string]string {
	labels := clusterLabels(s)
	labels[v1alpha1.LabelMember] = id
	return labels
}

func owner(s settings) metav1.OwnerReference {
	return *metav1.NewControllerRef(s.set, v1alpha1.GroupVersion.WithKind("StatefulCluster"))
}

// claimOwner returns the owner reference that makes the garbage collector delete the claim with the
// set. It is not a controller reference and does not block the deletion of the set.
func claimOwner(s settings) metav1.OwnerReference {
	ref := owner(s)
	ref.Controller, ref.BlockOwnerDeletion = nil, nil
	return ref
}
