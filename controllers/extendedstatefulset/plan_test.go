package extendedstatefulset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// scene builds a world from short calls.
type scene struct{ w *facts.World }

// of returns the world of a set whose current version is 1.
func of(set *v1alpha1.ExtendedStatefulSet) *scene {
	digest, err := children.DigestOf(set)
	if err != nil {
		panic(err)
	}
	set.UID = "uid"
	set.Status = v1alpha1.ExtendedStatefulSetStatus{CurrentVersion: 1, CurrentDigest: digest, UpdateVersion: 1, VersionHighWater: 1, Phase: v1alpha1.PhaseStable}
	w := &facts.World{Now: noon, Live: true, Set: set, Digest: digest, Replicas: spec.ReplicasOf(set), Zones: children.ZonesOf(set, &set.Status),
		Claims: map[string]*corev1.PersistentVolumeClaim{}, Services: map[string]*corev1.Service{}}
	set.Spec.Template.Spec.ServiceName = ""
	w.Digest, _ = children.DigestOf(set)
	set.Status.CurrentDigest = w.Digest
	return &scene{w}
}

// edited sets a template other than that of the current version.
func (s *scene) edited() *scene {
	s.w.Set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "new"
	s.w.Digest, _ = children.DigestOf(s.w.Set)
	return s
}

// has adds the StatefulSet of a version with the given ordinals. All its pods have been Ready for an
// hour, except those in unready.
func (s *scene) has(number int64, sp children.Span, unready ...int32) *scene {
	z := s.w.Zones[0]
	digest, attempts := fmt.Sprintf("of version %d", number), int32(0)
	switch st := &s.w.Set.Status; number {
	case st.CurrentVersion:
		digest = st.CurrentDigest
	case st.UpdateVersion:
		digest, attempts = s.w.Digest, st.Attempts
	}
	set := children.BuildChild(s.w.Set, z, children.Version{Number: number, Digest: digest, Attempts: attempts}, sp)
	set.UID, set.Generation, set.Status.ObservedGeneration = types.UID(set.Name), 1, 1
	set.Annotations[v1alpha1.AnnotationApplied] = children.Applied{Hash: children.ContentHash(set), Generation: 1}.String()
	c := &facts.Child{Set: set, Zone: z.Index, Version: number, Pods: map[int32]*corev1.Pod{}}
	s.w.Children = append(s.w.Children, c)
	for o := sp.Start; o < sp.End(); o++ {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", set.Name, o), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
		ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp}
		if slices.Contains(unready, o) {
			ready.Status = corev1.ConditionFalse
		}
		pod.Status.Conditions = []corev1.PodCondition{ready}
		c.Pods[o] = pod
		s.w.Pods = append(s.w.Pods, facts.PodOfOrdinal{Zone: z.Index, Version: number, Ordinal: o, Pod: pod, Owned: true})
	}
	return s
}

// upgrading starts an upgrade to version 2, in the given phase.
func (s *scene) upgrading(phase v1alpha1.Phase, how v1alpha1.Handover) *scene {
	s.edited()
	now := metav1.NewTime(noon)
	st := &s.w.Set.Status
	st.UpdateVersion, st.VersionHighWater, st.Phase, st.Attempts = 2, 2, phase, 1
	st.Update = &v1alpha1.UpdateStatus{Digest: s.w.Digest, Handover: how, StartedAt: &now, CanaryAt: &now}
	return s
}

// leaving adds a terminating pod on an ordinal.
func (s *scene) leaving(number int64, ordinal int32) *scene {
	z := s.w.Zones[0]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", children.ChildName("db", z, number), ordinal), DeletionTimestamp: ptr.To(metav1.NewTime(noon))}}
	s.w.Pods = append(s.w.Pods, facts.PodOfOrdinal{Zone: z.Index, Version: number, Ordinal: ordinal, Pod: pod, Owned: false})
	return s
}

func (s *scene) but(f func(*facts.World)) *scene {
	f(s.w)
	return s
}

// after advances the clock.
func (s *scene) after(d time.Duration) *scene {
	s.w.Now = s.w.Now.Add(d)
	return s
}

// decided returns the facts of a world, and their plan.
func decided(w *facts.World) (*facts.Facts, *rules.Plan) {
	f := record.Derive(w)
	p := rules.Decide(f)
	return f, &p
}

// asRecorded returns the facts of a world that leads to no other record.
func asRecorded(w *facts.World) *facts.Facts {
	return &facts.Facts{World: w, Record: w.Set.Status.DeepCopy()}
}

// says returns the result of decide without claims: the record, or the writes.
func (s *scene) says() string {
	f, p := decided(s.w)
	if p.RecordFirst {
		return "record: " + status.RecordLine(&s.w.Set.Status, f.Record)
	}
	var lines []string
	for _, line := range p.Steps.Strings() {
		if !strings.Contains(line, "persistentvolumeclaim") {
			lines = append(lines, line)
		}
	}
	return strings.Join(append(lines, ""), "\n")
}

// keptEdit marks the first StatefulSet as edited by another client, with the edit already reported.
func keptEdit(w *facts.World) {
	set := w.Children[0].Set
	set.Generation, set.Annotations[v1alpha1.AnnotationApplied] = 2, children.Applied{Hash: children.ContentHash(set), Generation: children.EditedGeneration}.String()
}

func observedLater(c *facts.Child) { c.Set.Generation++ }

// sentence is a row of a table: a scene, and the expected decision.
type sentence struct {
	name  string
	scene *scene
	want  string
}

func (row sentence) check(t *testing.T) {
	if got := row.scene.says(); got != row.want {
		t.Errorf("got\n%swant\n%s", got, row.want)
	}
}

func TestDecide(t *testing.T) {
	perOrdinal, coexist := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	canary, promoting, postJob := v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhasePostJob
	for _, row := range []sentence{
		{"a stable set is not changed", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}), ""},
		{"E12 ordinals that another client added are removed", of(plain()).has(1, children.Span{Start: 0, Replicas: 5}), "patch statefulset db-v1: Scale, ordinals 0 to 2\n"},
		{"a version is recorded before its objects are created", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).edited(),
			"record: Canary, version 1 to 2, attempt 1"},
		{"E22 an upgrade waits until the current version is Ready", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 2).edited(), "record: Waiting, version 1"},
		{"E22 an upgrade with updateNotReady does not wait", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 2).edited().but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady = true }),
			"record: Canary, version 1 to 2, attempt 1"},
		{"an upgrade with updateNotReady waits until the ordinals of an earlier upgrade are returned", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).edited().
			but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady, w.Set.Status.UpdateVersion = true, 0 }).has(2, children.Span{Start: 0, Replicas: 1}),
			"record: Waiting, version 1"},
		{"a write without a change is not treated as an edit", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(func(w *facts.World) {
			set := w.Children[0].Set
			set.Annotations[v1alpha1.AnnotationApplied] = children.Applied{Hash: children.ContentHash(set), Generation: 2}.String()
		}), "patch statefulset db-v1: Child\n"},
		{"E9 a version number above all earlier ones is used after their StatefulSets were deleted",
			of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).edited().but(func(w *facts.World) { w.Set.Status.VersionHighWater = 11 }), "record: Canary, version 1 to 12, attempt 1"},
		{"E19 phase Canary continues with one of two canaries", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}).
			but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }), "patch statefulset db-v2: Scale, ordinals 0 to 1\n"},
		{"E19 phase Canary ends with two of two canaries", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 2}).
			but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }), "record: Promoting, version 1 to 2, attempt 1"},
		{"a canary is good only after minReadySeconds", of(plain()).but(func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 3601 }).
			has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}), ""},
		{"a canary does not fail before canaryWatchTime ends", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}, 0).after(5*time.Minute - 1), ""},
		{"a canary fails when canaryWatchTime ends", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}, 0).after(5 * time.Minute),
			"record: Stale, version 1 to 2, attempt 1, CanaryFailed"},
		{"E20 another attempt follows within retryCount", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}, 0).after(5 * time.Minute).
			but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.RetryCount = 1 }), "record: Canary, version 1 to 2, attempt 1, CanaryFailed"},
		{"an upgrade fails when updateWatchTime ends", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(promoting, coexist).has(2, children.Span{Start: 0, Replicas: 3}, 2).after(10 * time.Minute),
			"record: Stale, version 1 to 2, attempt 1, UpdateTimeout"},
		{"the old version is kept until all new pods serve", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(postJob, coexist).has(2, children.Span{Start: 0, Replicas: 3}, 1), ""},
		{"a reverted template restores the current version", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}).
			but(func(w *facts.World) { w.Digest = w.Set.Status.CurrentDigest }), "record: CleaningUp, version 1"},
		{"an ordinal is not assigned while its old pod is terminating", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(canary, perOrdinal).has(2, children.Span{Start: 3}).leaving(1, 2), ""},
		{"an ordinal is not assigned before the StatefulSet controller has observed its removal", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(canary, perOrdinal).
			has(2, children.Span{Start: 3}).but(func(w *facts.World) {
			observedLater(w.Children[0])
			w.Children[0].Set.Annotations[v1alpha1.AnnotationApplied] = ""
		}), ""},
		{"an ordinal is assigned after the old pod is deleted and its removal is observed", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(canary, perOrdinal).has(2, children.Span{Start: 3}),
			"patch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"no ordinal of a serving pod is taken while another does not serve", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}, 0).upgrading(promoting, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}), ""},
		{"an ordinal whose pod does not serve is taken", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}, 1).upgrading(promoting, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}),
			"patch statefulset db-v1: Scale, ordinals 0 to 0\n"},
		{"a rollback does not wait for a pod that was not Ready for canaryWatchTime", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}, 0).upgrading(v1alpha1.PhaseStale, perOrdinal).
			has(2, children.Span{Start: 2, Replicas: 1}).but(stale2), "patch statefulset db-v2: Scale, no pods\n"},
		{"E6 versions below the current one are deleted, and versions above it are kept", of(plain()).has(1, children.Span{}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 3}).
			but(func(w *facts.World) {
				w.Set.Status.CurrentVersion, w.Set.Status.CurrentDigest, w.Set.Status.UpdateVersion = 2, "of version 2", 3
				w.Set.Status.VersionHighWater = 3
			}).has(3, children.Span{Start: 0, Replicas: 1}, 0), "delete statefulset db-v1: OldVersion\n"},
		{"E8 no version is deleted while none serves", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}, 0), ""},
		{"a lost status is restored from the StatefulSets", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).has(7, children.Span{}).
			but(func(w *facts.World) { w.Set.Status = v1alpha1.ExtendedStatefulSetStatus{} }), "record: CleaningUp, version 1"},
		{"ES10 a lost status is restored from a job of an earlier version", of(plain()).
			but(func(w *facts.World) {
				w.Set.Status = v1alpha1.ExtendedStatefulSetStatus{}
				w.Jobs = map[string]*batchv1.Job{"db-post-v7-1": children.BuildJob(w.Set, job("x"), "post", 7, 1)}
			}), "record: Promoting, version 8"},
		{"a terminating set is not changed", of(plain()).but(func(w *facts.World) { w.Set.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.check(t)
		})
	}
}

// stale2 marks version 2 as stale.
func stale2(w *facts.World) {
	w.Set.Status.Update.Reason, w.Set.Status.Update.Message = "Why", "because"
	c := w.Children.Find(w.Zones[0].Index, 2)
	(&rules.ChildPatch{F: asRecorded(w), C: c, Next: c.Set}).MarkStale()
}

// TestHandEdits verifies the response to edits of StatefulSets by other clients.
func TestHandEdits(t *testing.T) {
	const coexist = v1alpha1.HandoverCoexist
	for _, row := range []sentence{
		{"an edit is reverted", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditUndone\n"},
		{"an edit of replicas is reverted", of(plain()).has(1, children.Span{Start: 0, Replicas: 2}).but(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditUndone, ordinals 0 to 2\n"},
		{"an edit is reported if the original content is unknown", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseStale, coexist).has(2, children.Span{}).but(stale2).
			but(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditKept\n"},
		{"an edit of replicas is reverted if the original content is unknown", of(plain()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseStale, coexist).has(2, children.Span{}).but(stale2).
			but(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditKept, ordinals 0 to 2\n"},
		{"a kept edit is reported once", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseStale, coexist).has(2, children.Span{}).but(stale2).but(keptEdit), ""},
		{"a kept edit is reverted when the original content is known", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptEdit), "patch statefulset db-v1: EditUndone\n"},
	} {
		t.Run(row.name, row.check)
	}
}

func TestParseChild(t *testing.T) {
	for _, row := range []struct {
		name    string
		index   int32
		version int64
		ok      bool
	}{
		{"db-v1", children.NoZone, 1, true}, {"db-v10", children.NoZone, 10, true}, {"db-z0-v2", 0, 2, true}, {"db-z12-v345", 12, 345, true},
		{"db", 0, 0, false}, {"db-v", 0, 0, false}, {"db-v0", 0, 0, false}, {"db-v01", 0, 0, false}, {"db-z-v1", 0, 0, false},
		{"db-z0-z1-v1", 0, 0, false}, {"dbx-v1", 0, 0, false}, {"db-va-v1", 0, 0, false}, {"db-z01-v1", 0, 0, false},
	} {
		if index, number, ok := children.ParseChild("db", row.name); ok != row.ok || ok && (index != row.index || number != row.version) {
			t.Errorf("%s: zone %d, version %d, %t", row.name, index, number, ok)
		}
	}
}

func TestTrim(t *testing.T) {
	for _, row := range []struct {
		name       string
		have, want facts.Spans
	}{
		{"ordinals of one version are kept", facts.Spans{1: {Start: 0, Replicas: 2}, 2: {Start: 2, Replicas: 1}}, facts.Spans{1: {Start: 0, Replicas: 2}, 2: {Start: 2, Replicas: 1}}},
		{"ordinals above replicas are removed", facts.Spans{1: {Start: 0, Replicas: 5}}, facts.Spans{1: {Start: 0, Replicas: 3}}},
		{"the goal keeps ordinals that two versions have", facts.Spans{1: {Start: 0, Replicas: 3}, 2: {Start: 1, Replicas: 2}}, facts.Spans{1: {Start: 0, Replicas: 3}, 2: {Start: 3, Replicas: 0}}},
		{"the goal keeps its lower ordinals that two versions have", facts.Spans{1: {Start: 1, Replicas: 2}, 2: {Start: 0, Replicas: 2}}, facts.Spans{1: {Start: 1, Replicas: 2}, 2: {Start: 0, Replicas: 1}}},
		{"a version with ordinals on both sides of the goal keeps the lower ones", facts.Spans{1: {Start: 1, Replicas: 1}, 2: {Start: 0, Replicas: 3}}, facts.Spans{1: {Start: 1, Replicas: 1}, 2: {Start: 0, Replicas: 1}}},
	} {
		if rules.Trim(row.have, 1, 3); !maps.Equal(row.have, row.want) {
			t.Errorf("%s: %v, want %v", row.name, row.have, row.want)
		}
	}
}

// TestKeepInZone verifies E29: the zone is added to every term, because terms are alternatives.
func TestKeepInZone(t *testing.T) {
	pod := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a"}}}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "b"}}}}}}}}
	bare := corev1.PodSpec{}
	for i, spec := range []*corev1.PodSpec{&pod, &bare} {
		children.KeepInZone(spec, "", "z")
		terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if len(terms) != 2-i {
			t.Fatalf("%d terms", len(terms))
		}
		for _, term := range terms {
			last := term.MatchExpressions[len(term.MatchExpressions)-1]
			if last.Key != corev1.LabelTopologyZone || last.Operator != corev1.NodeSelectorOpIn || !slices.Equal(last.Values, []string{"z"}) {
				t.Errorf("got a term without the zone: %v", term)
			}
		}
	}
}

// TestDigest verifies that in-place changes create no version, and that all other changes do.
func TestDigest(t *testing.T) {
	digest := func(change func(*appsv1.StatefulSetSpec)) string {
		set := volumes()
		change(&set.Spec.Template.Spec)
		d, err := children.DigestOf(set)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	same := digest(func(*appsv1.StatefulSetSpec) {})
	for name, change := range map[string]func(*appsv1.StatefulSetSpec){
		"replicas": func(s *appsv1.StatefulSetSpec) { s.Replicas = ptr.To(int32(9)) },
		"the size of a claim": func(s *appsv1.StatefulSetSpec) {
			s.VolumeClaimTemplates[0].Spec.Resources.Requests = nil
		},
		"an empty map": func(s *appsv1.StatefulSetSpec) { s.Template.Spec.NodeSelector = map[string]string{} },
	} {
		if digest(change) != same {
			t.Errorf("%s creates a version", name)
		}
	}
	if digest(func(s *appsv1.StatefulSetSpec) { s.Template.Spec.Containers[0].Image = "two" }) == same {
		t.Error("an image creates no version")
	}
}

// TestWhyAPodIsReadyOnlyBetweenCrashes verifies V6: a version may fail at the moment when its container
// has just been restarted.
func TestWhyAPodIsReadyOnlyBetweenCrashes(t *testing.T) {
	crashed := func(w *facts.World) {
		w.Children[0].Pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 3,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}}}}
	}
	lasting := func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 10 }
	for _, row := range []struct {
		name  string
		scene *scene
		want  string
	}{
		{"a crashed pod that has just become Ready", of(plain()).has(1, children.Span{Start: 0, Replicas: 2}).turned(0, 1, time.Second).but(lasting).but(crashed),
			"; not Ready: db-v1-1 (CrashLoopBackOff: container main ended with code 7)"},
		{"a crashed pod that was Ready for minReadySeconds", of(plain()).has(1, children.Span{Start: 0, Replicas: 2}).turned(0, 1, time.Minute).but(lasting).but(crashed), ""},
		{"a pod without crashes that has just become Ready", of(plain()).has(1, children.Span{Start: 0, Replicas: 2}).turned(0, 1, time.Second).but(lasting), ""},
	} {
		if got := facts.Unready(row.scene.w, 1); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// TestACanaryThatCrashes verifies E20: without a readiness probe a container is Ready while it runs,
// even if it crashes shortly after its start.
func TestACanaryThatCrashes(t *testing.T) {
	since := func(d time.Duration, ordinal int32) func(*facts.World) {
		return func(w *facts.World) {
			w.Children.Find(w.Zones[0].Index, 2).Pods[ordinal].Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.Now.Add(-d))
		}
	}
	two := func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }
	canary := func(how v1alpha1.Handover, sp children.Span) *scene {
		return of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, how).has(2, sp)
	}
	promoting := "record: Promoting, version 1 to 2, attempt 1"
	for _, row := range []struct {
		name  string
		scene *scene
		want  string
	}{
		{"a canary that was Ready for 9 s is not good", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).but(since(9*time.Second, 2)), ""},
		{"a canary that was Ready for longer than the first restart delay is good", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).but(since(10*time.Second, 2)), promoting},
		{"minReadySeconds replaces the probation", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).
			but(func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 1 }).but(since(2*time.Second, 2)), promoting},
		{"half of a short canaryWatchTime is enough", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).
			but(func(w *facts.World) {
				w.Set.Spec.UpdateStrategy.CanaryWatchTime = &metav1.Duration{Duration: 6 * time.Second}
			}).but(since(3*time.Second, 2)), promoting},
		{"the second ordinal is not taken while the first canary is on probation", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).but(two).but(since(9*time.Second, 2)), ""},
		{"the second ordinal is taken when the first canary is good", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).but(two).but(since(10*time.Second, 2)),
			"patch statefulset db-v1: Scale, ordinals 0 to 0\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.scene.says(); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}
