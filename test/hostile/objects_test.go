package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// attacks returns the attacks that write objects or send requests.
func (s *site) attacks() []attack {
	h := s.hostile
	return []attack{
		{name: "1: bodies of all shapes", strike: s.bodies()},
		{name: "2: an unlimited number of replicas", prepare: h.replicas, clean: true},
		{name: "9: StatefulSingletons of the max size", prepare: h.largeSingletons, strike: h.touch, clean: true},
		{name: "11: pods with thousands of containers", prepare: h.initSingleton, strike: h.manyContainers, clean: true},
		{name: "17: 200 StatefulSingletons at once", strike: h.manySingletons, clean: true},
		{name: "18: commands with unlimited output", prepare: h.commands(true), clean: true},
		{name: "19: restarts that never end", prepare: h.brokenSets, strike: h.editConfiguration, clean: true},

		{name: "bodies declared as YAML", strike: s.bodiesAsYAML},
		{name: "pods with forged owners", prepare: h.forgedOwners, strike: h.touch, clean: true, long: true},

		{name: "commands that hang", prepare: h.commands(false), clean: true, long: true},
		{name: "connections from many addresses", strike: s.connections},
		{name: "large objects", prepare: h.largeObjects, clean: true, long: true},
		{name: "25 of each kind, full", prepare: h.full, strike: h.touch, clean: true, long: true},
		{name: "large metadata of pods and ConfigMaps", prepare: h.largeMetadata, strike: h.touch, clean: true, long: true},
		{name: "large pods that a StatefulSingleton selects", prepare: h.largePods, strike: h.touch, clean: true, long: true},
		{name: "objects that change all the time", prepare: h.objects, strike: h.touch, clean: true, long: true},
		{name: "20 StatefulClusters of 20000", prepare: h.hugeClusters, clean: true, long: true},
		{name: "objects above limits that were introduced later", prepare: s.older, clean: true, long: true},
		{name: "large metadata of objects that look like children", prepare: h.largeChildren, strike: h.touch, clean: true, long: true},
	}
}

// many calls do the given number of times, some in parallel. The API server may reject the requests:
// only the effect on the neighbors matters.
func many(ctx context.Context, times int, do func(i int)) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < times && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// makes creates the given number of objects.
func (n *tenant) makes(ctx context.Context, times int, object func(name string) client.Object) {
	many(ctx, times, func(i int) { _ = n.Create(ctx, object(fmt.Sprint("h", i))) })
}

// touch changes an annotation of each object, so that it is reconciled.
func (n *tenant) touch(ctx context.Context) {
	for _, list := range ourLists() {
		if n.List(ctx, list, client.InNamespace(n.name)) != nil {
			continue
		}
		objects, _ := meta.ExtractList(list) // it is a list
		many(ctx, len(objects), func(i int) {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, time.Now().UnixNano())
			_ = n.Patch(ctx, objects[i].(client.Object), client.RawPatch(types.MergePatchType, patch))
		})
	}
}

// replicas sets the max replicas of the type, and the max that is allowed.
func (n *tenant) replicas(ctx context.Context) {
	for _, object := range []client.Object{newExtended(n.name, "max"), newCluster(n.name, "max"), newReplicated(n.name, "max")} {
		_ = n.Create(ctx, object)
		for _, replicas := range []int32{1<<31 - 1, 200} {
			_ = n.SubResource("scale").Update(ctx, object, client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}))
		}
	}
	for i, replicas := range []int32{1<<31 - 1, 1000, 1000, 1000, 1000} {
		set := newExtended(n.name, fmt.Sprint("made", i))
		set.Spec.Template.Spec.Replicas = &replicas
		_ = n.Create(ctx, set)
	}
}

// largeSingletons creates selectors of 64 KiB, and more objects than are managed.
func (n *tenant) largeSingletons(ctx context.Context) {
	n.makes(ctx, 40, func(name string) client.Object {
		s := newSingleton(n.name, name)
		for i := range 31 {
			e := metav1.LabelSelectorRequirement{Key: fmt.Sprint("key-", i), Operator: metav1.LabelSelectorOpNotIn}
			for j := range 32 {
				e.Values = append(e.Values, strings.Repeat("x", 60)+fmt.Sprint(j))
			}
			s.Spec.Selector.MatchExpressions = append(s.Spec.Selector.MatchExpressions, e)
		}
		return s
	})
}

func (n *tenant) initSingleton(ctx context.Context) {
	s := newSingleton(n.name, "init")
	s.Spec.GateMode = statefulsingletonv1.GateInit
	_ = n.Create(ctx, s)
}

// manyContainers creates pods by dry run whose injection compares many containers.
func (n *tenant) manyContainers(ctx context.Context) {
	pod := newPod(n.name, "many", "init")
	for i := range 4000 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: fmt.Sprint("i", i)})
	}
	many(ctx, 4, func(int) { _ = n.Create(ctx, pod.DeepCopy(), client.DryRunAll) })
}

// manySingletons creates more objects than allowed in parallel, with pods.
func (n *tenant) manySingletons(ctx context.Context) {
	n.makes(ctx, 200, func(name string) client.Object { return newSingleton(n.name, name) })
	n.makes(ctx, 40, func(name string) client.Object { return newPod(n.name, name, name) })
}

// commands creates members whose commands never end.
func (n *tenant) commands(prints bool) func(context.Context) {
	return func(ctx context.Context) {
		babble.Store(prints)
		many(ctx, 5, func(i int) {
			set := newReplicated(n.name, fmt.Sprint("h", i))
			set.Spec.Replicas = new(int32(60))
			_ = n.Create(ctx, set)
			child := &appsv1.StatefulSet{}
			_ = poll(ctx, func() bool {
				return n.Get(ctx, client.ObjectKey{Namespace: n.name, Name: "rss-" + set.Name}, child) == nil
			})
			many(ctx, 60, func(ordinal int) { _ = n.Create(ctx, podOf(child, ordinal, hostileNode)) })
		})
	}
}

// brokenSets creates objects whose pods never become Ready.
func (n *tenant) brokenSets(ctx context.Context) {
	_ = n.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: "all"}, Data: map[string]string{"a": "1"}})
	n.makes(ctx, 40, func(name string) client.Object {
		set := newExtended(n.name, name)
		set.Spec.Template.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name = "all"
		return set
	})
	var children appsv1.StatefulSetList
	_ = poll(ctx, func() bool {
		return n.List(ctx, &children, client.InNamespace(n.name)) == nil && len(children.Items) == 40
	})
}

func (n *tenant) editConfiguration(ctx context.Context) {
	patch := fmt.Appendf(nil, `{"data":{"a":"%d"}}`, time.Now().UnixNano())
	_ = n.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: "all"}}, client.RawPatch(types.MergePatchType, patch))
}

// nearly256KiB returns annotations of almost the max size of a spec.
func nearly256KiB() map[string]string {
	fill := map[string]string{}
	for i := range 60 {
		fill[fmt.Sprint("fill-", i)] = strings.Repeat("x", 4000)
	}
	return fill
}

// addMiB adds labels of about 1 MiB.
func addMiB(labels map[string]string) {
	for i := range 7000 {
		labels[fmt.Sprintf("%s.example/%d", strings.Repeat("x", 60), i)] = strings.Repeat("y", 60)
	}
}

// largeObjects creates objects of the max size, for each kind with a template.
func (n *tenant) largeObjects(ctx context.Context) {
	fill := nearly256KiB()
	n.makes(ctx, 100, func(name string) client.Object {
		set := newCluster(n.name, name)
		set.Spec.Replicas, set.Spec.Template.Annotations = new(int32(0)), fill
		return set
	})
	n.makes(ctx, 100, func(name string) client.Object {
		set := newExtended(n.name, name)
		set.Spec.Template.Spec.Replicas, set.Spec.Template.Spec.Template.Annotations = new(int32(0)), fill
		return set
	})
	n.makes(ctx, 100, func(name string) client.Object {
		set := newReplicated(n.name, name)
		set.Spec.Replicas, set.Annotations = new(int32(0)), fill
		return set
	})
}

// full creates as many objects of each kind as the quota of docs/security.md allows. All parts of each
// have the max size that the policies and the schemas allow.
func (n *tenant) full(ctx context.Context) {
	labels, annotations, fill := map[string]string{}, map[string]string{}, nearly256KiB()
	for i := range 64 {
		labels[strings.Repeat("x", 224)+"."+strings.Repeat("y", 20)+fmt.Sprintf(".example/%060d", i)] = strings.Repeat("z", 63)
	}
	for i := range 256 {
		annotations[fmt.Sprintf("example.com/%03d", i)] = strings.Repeat("x", 230)
	}
	var taken atomic.Int64
	create := func(object client.Object) {
		object.SetLabels(labels)
		object.SetAnnotations(annotations)
		if n.Create(ctx, object) == nil {
			taken.Add(1)
		}
	}
	many(ctx, 25, func(i int) {
		name := fmt.Sprint("full-", i)
		cluster := newCluster(n.name, name)
		cluster.Spec.Replicas, cluster.Spec.Template.Annotations = new(int32(0)), fill
		create(cluster)
		extended := newExtended(n.name, name)
		extended.Spec.Template.Spec.Replicas, extended.Spec.Template.Spec.Template.Annotations = new(int32(0)), fill
		create(extended)
		replicated := newReplicated(n.name, name)
		replicated.Spec.Replicas = new(int32(0))
		for i := range 60 {
			replicated.Spec.Pod.Containers[0].Env = append(replicated.Spec.Pod.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("FILL_", i), Value: strings.Repeat("x", 4000)})
		}
		create(replicated)
		create(newSingleton(n.name, name))
	})
	fmt.Printf("%d full objects were accepted\n", taken.Load())
}

// largeMetadata creates unmanaged pods with many labels, including those that the operator's watches
// select.
func (n *tenant) largeMetadata(ctx context.Context) {
	_ = n.Create(ctx, newSingleton(n.name, "all"))
	labels := map[string]string{"app": "all", clusterlabsv1alpha1.LabelManaged: "true", engev1alpha1.LabelCluster: "all"}
	addMiB(labels)
	n.makes(ctx, 100, func(name string) client.Object {
		pod := newPod(n.name, name, "all")
		pod.Labels, pod.Spec.NodeName = labels, ""
		return pod
	})
	n.makes(ctx, 300, func(name string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name, Annotations: map[string]string{"a": strings.Repeat("x", 250<<10)}}}
	})
	n.makes(ctx, 300, func(name string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name, Annotations: map[string]string{"a": strings.Repeat("x", 250<<10)}},
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	})
}

// largeChildren creates objects of each cached kind with the labels that the operator selects, and as
// many others as the API server allows.
func (n *tenant) largeChildren(ctx context.Context) {
	_ = n.Create(ctx, newCluster(n.name, "all"))
	_ = n.Create(ctx, newExtended(n.name, "all"))
	labels := map[string]string{clusterlabsv1alpha1.LabelApp: "all", clusterlabsv1alpha1.LabelManaged: "true",
		engev1alpha1.LabelCluster: "all", fissilev1alpha1.LabelSet: "all"}
	addMiB(labels)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "all"}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "all"}}
	kept := template
	kept.Spec.RestartPolicy = corev1.RestartPolicyAlways
	for _, object := range []client.Object{
		&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}},
		&policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}},
		&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0)), Selector: selector, Template: kept}},
		&batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(true), Template: template}},
		&corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&corev1.ConfigMap{},
	} {
		var taken atomic.Int64
		many(ctx, 60, func(i int) {
			one := object.DeepCopyObject().(client.Object)
			one.SetNamespace(n.name)
			one.SetName(fmt.Sprint("large-", i))
			one.SetLabels(labels)
			if n.Create(ctx, one) == nil {
				taken.Add(1)
			}
		})
		fmt.Printf("%d objects of %T were accepted\n", taken.Load(), object)
	}
}

// largePods creates large pods, for which the operator's live reads return the whole object.
func (n *tenant) largePods(ctx context.Context) {
	n.makes(ctx, 30, func(name string) client.Object {
		s := newSingleton(n.name, name)
		s.Spec.Selector.MatchLabels = map[string]string{"app": "large"}
		return s
	})
	n.makes(ctx, 150, func(name string) client.Object {
		pod := newPod(n.name, name, "large")
		pod.Spec.NodeName, pod.Spec.Containers[0].Args = "", []string{strings.Repeat("x", 1<<20)}
		return pod
	})
}

// forgedOwners creates pods with owners that did not create them: the tenant's objects, by their UID,
// and names of the neighbors' objects.
func (n *tenant) forgedOwners(ctx context.Context) {
	_ = n.Create(ctx, newSingleton(n.name, "owner"))
	owners := []client.Object{newCluster(n.name, "owner"), newReplicated(n.name, "owner"), newExtended(n.name, "owner")}
	for _, owner := range owners {
		_ = n.Create(ctx, owner)
	}
	for i, owner := range owners {
		kind, err := n.GroupVersionKindFor(owner)
		if err != nil {
			continue
		}
		n.makes(ctx, 300, func(name string) client.Object {
			pod := newPod(n.name, fmt.Sprint("forged-", i, "-", name), "owner")
			pod.Labels[engev1alpha1.LabelCluster], pod.Labels[clusterlabsv1alpha1.LabelManaged] = "owner", "true"
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
			pod.Annotations = map[string]string{"a": strings.Repeat("x", 100<<10)}
			return pod
		})
	}
}

// objects creates many small objects.
func (n *tenant) objects(ctx context.Context) {
	n.makes(ctx, 60, func(name string) client.Object { return newCluster(n.name, "c"+name) })
	n.makes(ctx, 60, func(name string) client.Object { return newReplicated(n.name, "r"+name) })
	n.makes(ctx, 60, func(name string) client.Object { return newExtended(n.name, "e"+name) })
	n.makes(ctx, 60, func(name string) client.Object { return newSingleton(n.name, "s"+name) })
}

func (n *tenant) hugeClusters(ctx context.Context) {
	n.makes(ctx, 40, func(name string) client.Object {
		set := newCluster(n.name, name)
		set.Spec.Replicas = new(int32(20000))
		return set
	})
}

// removeHostile deletes all objects of the hostile tenant, as an administrator would.
func (s *site) removeHostile(t *testing.T) {
	t.Helper()
	ctx, all := t.Context(), client.InNamespace(s.hostile.name)
	NewWithT(t).Eventually(func() error {
		left := 0
		for i, kind := range ourKinds() {
			if err := s.admin.DeleteAllOf(ctx, kind, all); err != nil {
				return err
			}
			list := ourLists()[i]
			if err := s.admin.List(ctx, list, all); err != nil {
				return err
			}
			left += s.letGo(ctx, list)
		}
		if err := s.collect(ctx, s.hostile.name); err != nil {
			return err
		}
		var pods corev1.PodList
		if err := s.admin.List(ctx, &pods, all); err != nil {
			return err
		}
		if left += s.letGo(ctx, &pods); left > 0 {
			return fmt.Errorf("%d are left", left)
		}
		return nil
	}, 2*time.Minute, 100*time.Millisecond).Should(Succeed())
}

// letGo removes the finalizers of objects, and returns the number of objects.
func (s *site) letGo(ctx context.Context, list client.ObjectList) int {
	objects, _ := meta.ExtractList(list) // it is a list
	many(ctx, len(objects), func(i int) {
		object := objects[i].(client.Object)
		if len(object.GetFinalizers()) > 0 {
			_ = s.admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
	})
	return len(objects)
}
