package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

var (
	noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	key  = types.NamespacedName{Namespace: "prod", Name: "shop"}
)

// toy is a kind whose objects are StatefulSets. Its operator replaces one outdated pod at a time, the last one
// first. The pod with ordinal 0 is the primary while it is Ready; otherwise the first Ready one is.
type toy struct{}

func (toy) New() client.Object { return &appsv1.StatefulSet{} }

func (toy) Reads(key types.NamespacedName) []simulation.Listing {
	within := []client.ListOption{client.InNamespace(key.Namespace)}
	return []simulation.Listing{{List: &corev1.PodList{}, Options: within}, {List: &policyv1.PodDisruptionBudgetList{}, Options: within},
		{List: &corev1.PersistentVolumeClaimList{}, Options: within}, {List: &corev1.NodeList{}}}
}

func (toy) Start(c *simulation.Cluster, key types.NamespacedName) simulation.Operator {
	return &toyOperator{c, key}
}

func (toy) Owns(object client.Object, pod *corev1.Pod) bool {
	return metav1.IsControlledBy(pod, object)
}

func (toy) Role(_ client.Object, pod *corev1.Pod) string { return pod.Labels["role"] }

type toyOperator struct {
	c   *simulation.Cluster
	key types.NamespacedName
}

func (o *toyOperator) Look() {}

func (o *toyOperator) Moves() []func() { return kubelet.Moves(o.c) }

func (o *toyOperator) Pass() simulation.Passed {
	var set appsv1.StatefulSet
	if o.c.Get(context.Background(), o.key, &set) != nil || set.DeletionTimestamp != nil {
		return simulation.Passed{}
	}
	return simulation.Passed{Acted: o.labels() || o.replaces(&set)}
}

// labels moves the role of the primary.
func (o *toyOperator) labels() (acted bool) {
	primary := ""
	for _, pod := range kubelet.Pods(o.c) {
		if primary == "" && podstate.Ready(pod) && !podstate.Terminating(pod) {
			primary = pod.Name
		}
	}
	for _, pod := range kubelet.Pods(o.c) {
		role := map[bool]string{true: "primary"}[pod.Name == primary]
		if pod.Labels["role"] != role {
			pod.Labels["role"] = role
			o.c.Put(pod)
			acted = true
		}
	}
	return acted
}

// replaces creates missing pods, and deletes surplus and outdated ones.
func (o *toyOperator) replaces(set *appsv1.StatefulSet) (acted bool) {
	whole := true
	for i := range int(*set.Spec.Replicas) {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		var pod corev1.Pod
		err := o.c.Get(context.Background(), types.NamespacedName{Namespace: set.Namespace, Name: name}, &pod)
		whole = whole && err == nil && podstate.Ready(&pod) && !podstate.Terminating(&pod)
		if err != nil {
			o.c.Put(podOf(set, name))
			acted = true
		}
	}
	pods := kubelet.Pods(o.c)
	slices.Reverse(pods)
	for _, pod := range pods {
		surplus := pod.Name >= fmt.Sprintf("%s-%d", set.Name, *set.Spec.Replicas)
		outdated := whole && pod.Spec.Containers[0].Image != set.Spec.Template.Spec.Containers[0].Image
		if (surplus || outdated) && !podstate.Terminating(pod) {
			o.c.Delete(pod)
			return true
		}
	}
	return acted
}

func podOf(set *appsv1.StatefulSet, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: map[string]string{"app": set.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}},
		Spec: *set.Spec.Template.Spec.DeepCopy()}
}

// shop returns a StatefulSet.
func shop(image string, replicas int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "shop", Generation: 1}}
	set.Spec.Replicas = &replicas
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: image}}
	return set
}

// live returns the objects of a cluster in which the set is at rest, and two Nodes.
func live(t *testing.T, set *appsv1.StatefulSet, also ...client.Object) Loaded {
	t.Helper()
	c := simulation.New(noon)
	for _, name := range []string{"n1", "n2"} {
		kubelet.Turn(c, name, true)
	}
	for _, object := range append(also, set) {
		c.Put(object)
	}
	if !simulation.Run(c, toy{}.Start(c, key), time.Minute) {
		t.Fatal("the set does not come to rest")
	}
	loaded, err := Load(context.Background(), c, toy{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func planOf(t *testing.T, live Loaded, change Change) *Plan {
	t.Helper()
	p, err := Make(Input{Kind: toy{}, Key: key, Live: live, Change: change, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func lines(steps []Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s", s.Batch, s.Action, s.Name, s.To, s.Role)))
	}
	return strings.Join(all, "\n")
}

func TestAnImageChangeRecreatesPodsOneByOne(t *testing.T) {
	p := planOf(t, live(t, shop("db:1", 3)), Put(shop("db:2", 3)))
	want := `1 RecreatePod shop-2
2 RecreatePod shop-1
3 RecreatePod shop-0  primary
3 Handover shop-0 shop-1 primary
4 Handover shop-1 shop-0 primary`
	if got := lines(p.Steps); got != want {
		t.Errorf("steps:\n%s\nwant:\n%s", got, want)
	}
	if want := (Summary{PodsRecreated: 3, Handovers: 2, Members: 3, MinReady: 2}); p.Summary != want {
		t.Errorf("summary %+v, want %+v", p.Summary, want)
	}
	if len(p.Changes) != 1 || p.Changes[0].Path != "spec.template.spec.containers[db].image" {
		t.Errorf("changes %+v", p.Changes)
	}
	if c := p.Steps[0].Changes; len(c) != 1 || c[0] != (Field{"db.image", "db:1", "db:2"}) {
		t.Errorf("changes of a pod: %+v", c)
	}
	if p.State != Complete || p.New {
		t.Errorf("%+v", p)
	}
}

func TestNothingHappensWithoutAChange(t *testing.T) {
	p := planOf(t, live(t, shop("db:1", 3)), Put(shop("db:1", 3)))
	if len(p.Steps)+len(p.InProgress)+len(p.Changes) > 0 {
		t.Errorf("%+v", p)
	}
}

func TestAScaleCreatesAndDeletesPods(t *testing.T) {
	if got, want := lines(planOf(t, live(t, shop("db:1", 1)), Put(shop("db:1", 3))).Steps), "1 CreatePod shop-1\n1 CreatePod shop-2"; got != want {
		t.Errorf("steps:\n%s\nwant:\n%s", got, want)
	}
	p := planOf(t, live(t, shop("db:1", 3)), Put(shop("db:1", 1)))
	if want := "1 DeletePod shop-2\n2 DeletePod shop-1"; lines(p.Steps) != want || p.Summary.MinReady != 1 {
		t.Errorf("steps:\n%s\nwant:\n%s; %+v", lines(p.Steps), want, p.Summary)
	}
}

func TestANewObject(t *testing.T) {
	c := simulation.New(noon)
	loaded, err := Load(context.Background(), c, toy{}, key)
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, loaded, Put(shop("db:1", 1)))
	if want := "1 CreatePod shop-0\n2 Handover  shop-0 primary"; lines(p.Steps) != want || !p.New {
		t.Errorf("steps:\n%s\nwant:\n%s; new %t", lines(p.Steps), want, p.New)
	}
}

func TestADeleteDeletesPods(t *testing.T) {
	p := planOf(t, live(t, shop("db:1", 2)), Delete(shop("db:1", 2)))
	want := "1 DeletePod shop-0  primary\n1 DeletePod shop-1"
	if got := lines(p.Steps); !strings.HasPrefix(got, want) || p.State != Complete {
		t.Errorf("steps:\n%s\nwant:\n%s; %+v", got, want, p)
	}
}

// TestStepsThatHappenAnyway starts with a set whose rollout has begun.
func TestStepsThatHappenAnyway(t *testing.T) {
	begun := live(t, shop("db:1", 2))
	for i, object := range begun.Objects {
		if objects.KindOf(object) == "StatefulSet" {
			begun.Objects[i] = shop("db:2", 2)
		}
	}
	p := planOf(t, begun, Put(shop("db:2", 3)))
	if got := lines(p.InProgress); !strings.Contains(got, "RecreatePod shop-1") || !strings.Contains(got, "RecreatePod shop-0") {
		t.Errorf("in progress:\n%s", got)
	}
	if want := "1 CreatePod shop-2"; lines(p.Steps) != want {
		t.Errorf("steps:\n%s\nwant:\n%s", lines(p.Steps), want)
	}
}

// TestAPodOfALocalVolumeWaitsForItsNode has a pod whose volume is on the Node that is drained.
func TestAPodOfALocalVolumeWaitsForItsNode(t *testing.T) {
	set := shop("db:1", 1)
	set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "data"}}
	claim.Spec.VolumeName = "pv"
	begun := live(t, set, claim)
	local := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	node := ""
	for _, object := range begun.Objects {
		switch o := object.(type) {
		case *corev1.Pod:
			node = o.Spec.NodeName
		case *corev1.Node:
			o.Annotations, o.Labels = nil, map[string]string{corev1.LabelHostname: o.Name}
		}
	}
	local.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	for _, row := range []struct {
		name    string
		volumes []client.Object
		ready   int
	}{{"a local volume", []client.Object{local}, 0}, {"an unknown volume", nil, 1}} {
		of := begun
		of.Objects = append(slices.Clone(begun.Objects), row.volumes...)
		p := planOf(t, of, Drain(node))
		if last := p.Steps[len(p.Steps)-1]; last.Ready != row.ready || p.Summary.PodsRecreated != 1 {
			t.Errorf("%s: %+v", row.name, p)
		}
	}
}

// TestVolumesAreLoaded checks that only the volumes of claims are loaded.
func TestVolumesAreLoaded(t *testing.T) {
	c := simulation.New(noon)
	c.Put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
	c.Put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "data"}}
	claim.Spec.VolumeName = "pv"
	c.Put(claim)
	l := Loaded{Objects: []client.Object{claim}}
	if err := l.addVolumes(context.Background(), c); err != nil || len(l.Objects) != 2 || l.Objects[1].GetName() != "pv" {
		t.Errorf("%v, %v", err, l.Objects)
	}
	l = Loaded{Objects: []client.Object{claim}}
	forbidden := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumes"), "", nil)
	}})
	if err := l.addVolumes(context.Background(), forbidden); err != nil || len(l.Unread) != 1 {
		t.Errorf("%v, %v", err, l.Unread)
	}
}

func TestADrainEvictsWhatBudgetsAllow(t *testing.T) {
	budget := func(min int) *policyv1.PodDisruptionBudget {
		least := intstr.FromInt32(int32(min))
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "shop"},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}}
	}
	p := planOf(t, live(t, shop("db:1", 4), budget(3)), Drain("n1"))
	if p.Summary.PodsRecreated != 2 || p.Summary.MinReady != 3 || len(p.Blocked) > 0 {
		t.Errorf("one at a time: %+v\n%s", p, lines(p.Steps))
	}
	if !p.Steps[0].EvictionsBlocked {
		t.Error("evictions are not blocked while a pod is recreated that the budget requires")
	}
	if p := planOf(t, live(t, shop("db:1", 4), budget(2)), Put(shop("db:2", 4))); slices.ContainsFunc(p.Steps, func(s Step) bool { return s.EvictionsBlocked }) {
		t.Error("evictions are blocked although the budget allows one more")
	}
	if p := planOf(t, live(t, shop("db:1", 4), budget(4)), Put(shop("db:2", 4))); p.Steps[0].EvictionsBlocked {
		t.Error("evictions are blocked by the change, which were blocked before")
	}
	p = planOf(t, live(t, shop("db:1", 4), budget(4)), Drain("n1"))
	if len(p.Steps) > 0 || len(p.Blocked) != 2 || !strings.Contains(p.Blocked[0], "budget shop allows no disruption") {
		t.Errorf("no disruption is allowed: %+v\n%s", p.Blocked, lines(p.Steps))
	}
}
