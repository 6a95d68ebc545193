package extended

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// fixture is an ExtendedStatefulSet under test.
type fixture struct {
	*kit.Cluster
	set *v1alpha1.ExtendedStatefulSet
}

// specChange changes a spec before the set is created.
type specChange func(*v1alpha1.ExtendedStatefulSetSpec)

// keeper is a script that writes its version to its volume, if it has one, when it begins and when
// it ends. It refuses the volume of another ordinal, and records if it finds another program there.
// If it is probed, it serves a folder from which the probe gets one file.
const keeper = `
say() { if [ -d /data ]; then echo "$*" >> /data/diary; fi; }
leave() { if [ -d /data ]; then rmdir /data/lock; fi; say end $VERSION; exit 0; }
trap leave TERM
if [ -d /data ]; then
  if [ -e /data/ordinal ] && [ "$(cat /data/ordinal)" != "$ORDINAL" ]; then echo "volume of $(cat /data/ordinal), not of $ORDINAL"; exit 1; fi
  echo $ORDINAL > /data/ordinal
  mkdir /data/lock || say overlap $VERSION
fi
if [ -n "$PROBED" ]; then mkdir -p /tmp/www; eval "$PROBED"; httpd -p 8080 -h /tmp/www; fi
say begin $VERSION` + kit.Idle

// versionVariable is the variable that tests change to create another version.
const versionVariable = "VERSION"

// newFixture builds an ExtendedStatefulSet in version 1. The keeper is its only container.
func newFixture(c *kit.Cluster, name string, replicas int32, changes ...specChange) *fixture {
	labels := map[string]string{"app": name}
	spec := v1alpha1.ExtendedStatefulSetSpec{
		InjectReplicasEnv: new(false), // or scaling would restart pods
		Template: v1alpha1.StatefulSetTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &replicas, ServiceName: name,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						TerminationGracePeriodSeconds: new(int64(10)), // the keeper ends at once
						AutomountServiceAccountToken:  new(false),
						EnableServiceLinks:            new(false),
						Containers: []corev1.Container{{
							Name: "keeper", Image: c.Image, Command: []string{"/bin/sh", "-c", keeper},
							Env: []corev1.EnvVar{
								{Name: versionVariable, Value: "1"},
								{Name: "ORDINAL", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
									FieldPath: "metadata.labels['" + appsv1.PodIndexLabel + "']"}}}},
							Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
								corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi")}},
						}},
					},
				},
			},
		},
	}
	for _, f := range changes {
		f(&spec)
	}
	return &fixture{Cluster: c, set: &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, Spec: spec}}
}

// onClaims gives the keeper a volume, so that it is updated ordinal by ordinal.
func onClaims(s *v1alpha1.ExtendedStatefulSetSpec) {
	s.Template.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}},
		},
	}}
	k := keeperOf(s)
	k.VolumeMounts = append(k.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
}

func coexist(s *v1alpha1.ExtendedStatefulSetSpec) {
	s.UpdateStrategy.Handover = v1alpha1.HandoverCoexist
}

func perOrdinal(s *v1alpha1.ExtendedStatefulSetSpec) {
	s.UpdateStrategy.Handover = v1alpha1.HandoverPerOrdinal
}

// watchFor sets the deadlines of the canary and of the whole upgrade.
func watchFor(canary, update time.Duration) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.CanaryWatchTime, s.UpdateStrategy.UpdateWatchTime = &metav1.Duration{Duration: canary}, &metav1.Duration{Duration: update}
	}
}

// patiently sets deadlines that no good version misses on a busy machine.
var patiently = watchFor(kit.Patience/2, kit.Patience)

func canaries(n int32) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.Canaries = &n }
}

func minReady(seconds int32) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { s.Template.Spec.MinReadySeconds = seconds }
}

// inVersion creates another version that works like the first.
func inVersion(value string) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { keeperOf(s).Env[0].Value = value }
}

// running makes the keeper's container run another script.
func running(script string) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { keeperOf(s).Command = []string{"/bin/sh", "-c", script} }
}

// Scripts that set the keeper's readiness, at its start or later.
const (
	beReady  = "touch /tmp/www/ready"
	beSick   = "rm /tmp/www/ready"
	notReady = ":"
	flapping = "(while true; do " + beReady + "; sleep 2; " + beSick + "; sleep 2; done) &"
)

// probed adds a readiness probe with a period of one second to the keeper's container. The probe
// uses HTTP, because a command each second would take CPU time from the test.
func probed(first string) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) {
		k := keeperOf(s)
		k.Env = slices.DeleteFunc(k.Env, func(e corev1.EnvVar) bool { return e.Name == "PROBED" })
		k.Env = append(k.Env, corev1.EnvVar{Name: "PROBED", Value: first})
		k.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}}}
	}
}

func scaled(replicas int32) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { s.Template.Spec.Replicas = &replicas }
}

func keeperOf(s *v1alpha1.ExtendedStatefulSetSpec) *corev1.Container {
	return &s.Template.Spec.Template.Spec.Containers[0]
}

// The current state.

// children returns the StatefulSets by name.
func (x *fixture) children(ctx context.Context) map[string]appsv1.StatefulSet {
	var list appsv1.StatefulSetList
	x.List(ctx, &list, client.InNamespace(x.Namespace))
	found := map[string]appsv1.StatefulSet{}
	for _, s := range list.Items {
		if metav1.IsControlledBy(&s, x.set) {
			found[s.Name] = s
		}
	}
	return found
}

// pods returns all pods by name, also those that are terminating.
func (x *fixture) pods(ctx context.Context) map[string]corev1.Pod {
	var list corev1.PodList
	x.List(ctx, &list, client.InNamespace(x.Namespace), client.MatchingLabels{v1alpha1.LabelSet: x.set.Name})
	found := map[string]corev1.Pod{}
	for _, p := range list.Items {
		if p.Labels[batchv1.JobNameLabel] == "" {
			found[p.Name] = p
		}
	}
	return found
}

// child returns the name of the StatefulSet of a version.
func (x *fixture) child(version int64) string { return fmt.Sprintf("%s-v%d", x.set.Name, version) }

func (x *fixture) size() int {
	return int(*x.set.Spec.Template.Spec.Replicas) * max(1, len(x.set.Spec.Zones))
}

// describe formats a status as one line.
func describe(set *v1alpha1.ExtendedStatefulSet) string {
	s := set.Status
	words := []string{fmt.Sprintf("generation %d of %d, phase %q, versions %v, current %d, update %d, high water %d, %d attempts, %d replicas, %d Ready",
		s.ObservedGeneration, set.Generation, s.Phase, s.Versions, s.CurrentVersion, s.UpdateVersion, s.VersionHighWater, s.Attempts, s.Replicas, s.ReadyReplicas)}
	if u := s.Update; u != nil {
		words = append(words, fmt.Sprintf("update since %s, returning %t: %s %s", u.StartedAt, u.Returning, u.Reason, u.Message))
	}
	for _, c := range s.Conditions {
		words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(words, "; ")
}

// Waits.

// create creates the set and waits until version 1 serves.
func (x *fixture) create(ctx context.Context) {
	x.Put(ctx, x.set)
	x.serves(ctx, 1)
}

// edit changes the live object, and retries on conflicts.
func (x *fixture) edit(ctx context.Context, changes ...specChange) {
	kit.Change(ctx, x.Cluster, x.set, func(s *v1alpha1.ExtendedStatefulSet) {
		for _, f := range changes {
			f(&s.Spec)
		}
	})
}

// says waits until the status of the present generation is as wanted.
func (x *fixture) says(ctx context.Context, what string, want func(v1alpha1.ExtendedStatefulSetStatus) bool) {
	x.Until(ctx, x.set.Name+" to print "+what, func(ctx context.Context) {
		x.Read(ctx, x.set)
		x.Expect(x.set.Status.ObservedGeneration).To(Equal(x.set.Generation), "%s", describe(x.set))
		x.Expect(want(x.set.Status)).To(BeTrue(), "%s", describe(x.set))
	})
}

// serves waits until only that version exists, with all its pods, and the status reports that no
// operation is in progress.
func (x *fixture) serves(ctx context.Context, version int64) {
	x.Until(ctx, fmt.Sprintf("version %d of %s to serve alone", version, x.set.Name), func(ctx context.Context) {
		x.Read(ctx, x.set)
		s := x.set.Status
		x.Expect(s.ObservedGeneration != x.set.Generation || s.Phase != v1alpha1.PhaseStable || s.CurrentVersion != version ||
			s.UpdateVersion != version || int(s.ReadyReplicas) != x.size() || !meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)).To(BeFalse(), "%s", describe(x.set))
		want := map[string]bool{strconv.FormatInt(version, 10): x.size() > 0}
		x.Expect(maps.Equal(s.Versions, want)).To(BeTrue(), "versions should be %v: %s", want, describe(x.set))
		for _, condition := range []string{v1alpha1.ConditionStale, v1alpha1.ConditionAborted} {
			x.Expect(meta.IsStatusConditionTrue(s.Conditions, condition)).To(BeFalse(), "%s still exists: %s", condition, describe(x.set))
		}
		x.alone(ctx, version)
	})
}

// alone checks StatefulSets and pods: all are of one version and Ready.
func (x *fixture) alone(ctx context.Context, version int64) {
	children := x.children(ctx)
	number := strconv.FormatInt(version, 10)
	for name, child := range children {
		x.Expect(child.Annotations[v1alpha1.AnnotationVersion]).To(Equal(number), "%s exists, with annotations %v", name, child.Annotations)
		x.Expect(child.Annotations[v1alpha1.AnnotationStale]).To(BeEmpty(), "%s exists, with annotations %v", name, child.Annotations)
	}
	want := max(1, len(x.set.Spec.Zones))
	x.Expect(len(children)).To(Equal(want), "%d StatefulSets exist: %v", len(children), slices.Sorted(maps.Keys(children)))
	x.onlyPods(ctx, version)
}

// onlyPods checks that all pods exist, are of that version, and are Ready.
func (x *fixture) onlyPods(ctx context.Context, version int64) {
	pods := x.pods(ctx)
	number := strconv.FormatInt(version, 10)
	for name, p := range pods {
		x.Expect(p.Labels[v1alpha1.LabelVersion]).To(Equal(number), "%s is of version %s, phase %s, Ready %t", name, p.Labels[v1alpha1.LabelVersion], p.Status.Phase, kit.PodCondition(&p, corev1.PodReady))
		x.Expect(p.DeletionTimestamp).To(BeNil(), "%s is of version %s, phase %s, Ready %t", name, p.Labels[v1alpha1.LabelVersion], p.Status.Phase, kit.PodCondition(&p, corev1.PodReady))
		x.Expect(kit.PodCondition(&p, corev1.PodReady)).To(BeTrue(), "%s is of version %s, phase %s, Ready %t", name, p.Labels[v1alpha1.LabelVersion], p.Status.Phase, kit.PodCondition(&p, corev1.PodReady))
	}
	x.Expect(len(pods)).To(Equal(x.size()), "%d pods exist, want %d: %v", len(pods), x.size(), slices.Sorted(maps.Keys(pods)))
}

// takenBack waits until the new version is rolled back with that phase, and the old version serves
// with all its pods and no others.
func (x *fixture) takenBack(ctx context.Context, phase v1alpha1.Phase, serving int64) {
	condition := map[v1alpha1.Phase]string{v1alpha1.PhaseStale: v1alpha1.ConditionStale, v1alpha1.PhaseAborted: v1alpha1.ConditionAborted}[phase]
	x.Until(ctx, fmt.Sprintf("%s to be rolled back to version %d", x.set.Name, serving), func(ctx context.Context) {
		x.Read(ctx, x.set)
		s := x.set.Status
		x.Expect(s.ObservedGeneration != x.set.Generation || s.Phase != phase || s.CurrentVersion != serving || int(s.ReadyReplicas) != x.size() ||
			!meta.IsStatusConditionTrue(s.Conditions, condition) || !meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)).To(BeFalse(), "%s", describe(x.set))
		x.onlyPods(ctx, serving)
	})
}

// shell runs a script in the keeper's container of a pod.
func (x *fixture) shell(ctx context.Context, pod, script string) string {
	out := x.Exec(ctx, client.ObjectKey{Namespace: x.Namespace, Name: pod}, "keeper", "/bin/sh", "-c", script)
	return strings.TrimSpace(out)
}
