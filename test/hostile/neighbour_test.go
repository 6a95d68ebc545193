package hostile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// read decodes a manifest.
func read[T client.Object](object T, namespace, name, text string) T {
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		panic(err) // the text is a constant of this package
	}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func newCluster(namespace, name string) *engev1alpha1.StatefulCluster {
	return read(&engev1alpha1.StatefulCluster{}, namespace, name, `
spec:
  selector: {matchLabels: {app: `+name+`}}
  template: {metadata: {labels: {app: `+name+`}}, spec: {containers: [{name: a, image: a}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`)
}

func newReplicated(namespace, name string) *clusterlabsv1alpha1.ReplicatedStatefulSet {
	return read(&clusterlabsv1alpha1.ReplicatedStatefulSet{}, namespace, name, `
spec:
  replicas: 1
  pod:
    containers: [{name: a, image: a}]
    commands: {status: {command: [status]}, sequence: {command: [sequence]}, stop: {command: [stop]}, seed: {command: [seed]}, primary: {command: [primary]}}
`)
}

func newExtended(namespace, name string) *fissilev1alpha1.ExtendedStatefulSet {
	return read(&fissilev1alpha1.ExtendedStatefulSet{}, namespace, name, `
spec:
  updateOnEnvChange: true
  template:
    spec:
      selector: {matchLabels: {app: `+name+`}}
      template:
        metadata: {labels: {app: `+name+`}}
        spec: {containers: [{name: a, image: a, envFrom: [{configMapRef: {name: `+name+`, optional: true}}]}]}
`)
}

func newSingleton(namespace, name string) *statefulsingletonv1.StatefulSingleton {
	return read(&statefulsingletonv1.StatefulSingleton{}, namespace, name, "spec: {selector: {matchLabels: {app: "+name+"}}}")
}

func newPod(namespace, name, app string) *corev1.Pod {
	return read(&corev1.Pod{}, namespace, name, `
metadata: {labels: {app: `+app+`}}
spec: {nodeName: `+node+`, terminationGracePeriodSeconds: 1, containers: [{name: a, image: a, command: [a]}]}
`)
}

// patience is the max time until a neighbor is served. It is not a goal: two CPUs run an API server,
// the attack and this test.
const patience = time.Minute

// wishes are the requests that each neighbor makes in parallel.
var wishes = []func(context.Context, *tenant, string) error{cluster1, replicated1, extended1, singleton1}

// round makes each neighbor create one object of each kind, wait until each is served, and delete all.
// It returns the waiting times.
func (s *site) round(ctx context.Context) (took []time.Duration, err error) {
	s.rounds++
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, n := range s.neighbours {
		all.Go(func() {
			var mine sync.WaitGroup
			for i, wish := range wishes {
				mine.Go(func() {
					within, stop := context.WithTimeout(ctx, patience)
					defer stop()
					began := time.Now()
					err := wish(within, n, fmt.Sprintf("%c%d", 'a'+i, s.rounds))
					mu.Lock()
					defer mu.Unlock()
					if took = append(took, time.Since(began)); err != nil {
						errs = append(errs, fmt.Errorf("%s: %w", n.name, err))
					}
				})
			}
			mine.Wait()
			if err := s.tidy(ctx, n); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took, errors.Join(errs...)
}

// create retries until the object is created. Pods are rejected while the webhook of their kind is
// unavailable, and real controllers retry too.
func (n *tenant) create(ctx context.Context, object client.Object) error {
	return createBy(ctx, n.Client, object)
}

// createBy is create for another client.
func createBy(ctx context.Context, c client.Client, object client.Object) error {
	var last error
	err := poll(ctx, func() bool {
		err := client.IgnoreAlreadyExists(c.Create(ctx, object))
		if last == nil || ctx.Err() == nil {
			last = err // not the timeout
		}
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), last)
	}
	return nil
}

// await waits until an object exists and is good.
func await[T client.Object](ctx context.Context, n *tenant, object T, name string, good func(T) bool) error {
	err := poll(ctx, func() bool {
		return n.seen.Get(ctx, client.ObjectKey{Namespace: n.name, Name: name}, object) == nil && good(object)
	})
	if err != nil {
		text, _ := yaml.Marshal(object)
		return fmt.Errorf("%T %s is not reconciled: %w\n%s", object, name, err, text)
	}
	return nil
}

func poll(ctx context.Context, good func() bool) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return good(), nil })
}

// cluster1 is served when it has a pod with a claim, and its status reports it.
func cluster1(ctx context.Context, n *tenant, name string) error {
	set := newCluster(n.name, name)
	if err := n.create(ctx, set); err != nil {
		return err
	}
	return await(ctx, n, set, name, func(set *engev1alpha1.StatefulCluster) bool {
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		of := client.MatchingLabels{engev1alpha1.LabelCluster: name}
		return n.seen.List(ctx, &pods, client.InNamespace(n.name), of) == nil && n.seen.List(ctx, &claims, client.InNamespace(n.name), of) == nil &&
			len(pods.Items) == 1 && len(claims.Items) == 1 && set.Status.ObservedGeneration == set.Generation && set.Status.Replicas == 1
	})
}

// replicated1 is served when commands have made its only member primary.
func replicated1(ctx context.Context, n *tenant, name string) error {
	set := newReplicated(n.name, name)
	if err := n.create(ctx, set); err != nil {
		return err
	}
	if err := n.controlStatefulSet(ctx, "rss-"+name, nil); err != nil {
		return err
	}
	return await(ctx, n, set, name, func(set *clusterlabsv1alpha1.ReplicatedStatefulSet) bool { return set.Status.Primaries == 1 })
}

// extended1 is served when its pod exists, and is restarted after a change of configuration.
func extended1(ctx context.Context, n *tenant, name string) error {
	configuration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name}, Data: map[string]string{"a": "1"}}
	set, child := newExtended(n.name, name), name+"-v1"
	for _, object := range []client.Object{configuration, set} {
		if err := n.create(ctx, object); err != nil {
			return err
		}
	}
	var before string
	if err := n.controlStatefulSet(ctx, child, func(child *appsv1.StatefulSet) { before = hashOf(child) }); err != nil {
		return err
	}
	err := await(ctx, n, set, name, func(set *fissilev1alpha1.ExtendedStatefulSet) bool { return set.Status.ReadyReplicas == 1 })
	if err != nil {
		return err
	}
	configuration.Data["a"] = "2"
	if err := n.Update(ctx, configuration); err != nil {
		return err
	}
	restarted := &appsv1.StatefulSet{}
	if err := await(ctx, n, restarted, child, func(child *appsv1.StatefulSet) bool { return hashOf(child) != before }); err != nil {
		return err
	}
	return n.allRun(ctx, restarted) // the number of parallel restarts is limited: this one must complete
}

func hashOf(child *appsv1.StatefulSet) string {
	return child.Spec.Template.Annotations[fissilev1alpha1.AnnotationConfigHash]
}

// singleton1 is served when a pod that it selects may run.
func singleton1(ctx context.Context, n *tenant, name string) error {
	set := newSingleton(n.name, name)
	if err := n.create(ctx, set); err != nil {
		return err
	}
	seen := func(set *statefulsingletonv1.StatefulSingleton) bool {
		return set.Status.ObservedGeneration == set.Generation
	}
	if err := await(ctx, n, set, name, seen); err != nil {
		return err
	}
	if err := n.create(ctx, newPod(n.name, name, name)); err != nil {
		return err
	}
	return await(ctx, n, set, name, func(set *statefulsingletonv1.StatefulSingleton) bool { return set.Status.ActivePod == name })
}

// controlStatefulSet replaces one sync of the StatefulSet controller: it creates the first pod and
// updates the status.
func (n *tenant) controlStatefulSet(ctx context.Context, name string, look func(*appsv1.StatefulSet)) error {
	set := &appsv1.StatefulSet{}
	if err := await(ctx, n, set, name, func(*appsv1.StatefulSet) bool { return true }); err != nil {
		return err
	}
	if look != nil {
		look(set)
	}
	if err := createBy(ctx, n.system, podOf(set, 0, node)); err != nil {
		return err
	}
	return n.allRun(ctx, set)
}

// allRun sets a StatefulSet's status to one up-to-date, ready pod.
func (n *tenant) allRun(ctx context.Context, set *appsv1.StatefulSet) error {
	was := set.DeepCopy()
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		UpdatedReplicas: 1, CurrentReplicas: 1, CurrentRevision: "now", UpdateRevision: "now"}
	return n.system.Status().Patch(ctx, set, client.MergeFrom(was))
}

// podOf returns a pod of a StatefulSet, on a node.
func podOf(set *appsv1.StatefulSet, ordinal int, on string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace, pod.Spec.NodeName = fmt.Sprintf("%s-%d", set.Name, ordinal), set.Namespace, on
	pod.Labels[appsv1.PodIndexLabel], pod.Labels[appsv1.StatefulSetPodNameLabel] = fmt.Sprint(ordinal), pod.Name
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return pod
}

// tidy deletes a neighbor's objects, waits until the operator has removed its finalizers, and then
// replaces the garbage collector.
func (s *site) tidy(ctx context.Context, n *tenant) error {
	ctx, stop := context.WithTimeout(ctx, 2*patience)
	defer stop()
	// A StatefulSingleton is only deleted after its pod has stopped.
	for _, kind := range append(ourKinds(), &corev1.Pod{}) {
		if err := s.admin.DeleteAllOf(ctx, kind, client.InNamespace(n.name)); err != nil {
			return fmt.Errorf("%s: delete %T: %w", n.name, kind, err)
		}
	}
	for _, list := range ourLists() {
		if err := poll(ctx, func() bool {
			return n.seen.List(ctx, list, client.InNamespace(n.name)) == nil && meta.LenList(list) == 0
		}); err != nil {
			text, _ := yaml.Marshal(list)
			return fmt.Errorf("%s: an object remains: %w\n%s", n.name, err, text)
		}
	}
	return s.collect(ctx, n.name)
}

func ourKinds() []client.Object {
	return []client.Object{&engev1alpha1.StatefulCluster{}, &clusterlabsv1alpha1.ReplicatedStatefulSet{},
		&fissilev1alpha1.ExtendedStatefulSet{}, &statefulsingletonv1.StatefulSingleton{}}
}

func ourLists() []client.ObjectList {
	return []client.ObjectList{&engev1alpha1.StatefulClusterList{}, &clusterlabsv1alpha1.ReplicatedStatefulSetList{},
		&fissilev1alpha1.ExtendedStatefulSetList{}, &statefulsingletonv1.StatefulSingletonList{}}
}
