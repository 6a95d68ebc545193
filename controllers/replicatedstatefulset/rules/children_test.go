package rules_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestRS131ServiceOfThatNameOfAnotherOwner(t *testing.T) {
	w := fixture.WorldOf(fixture.SetOf(3, 1))
	w.Services[spec.SecondaryServiceName(w.Set)] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: spec.SecondaryServiceName(w.Set), Namespace: w.Set.Namespace}}
	if described, child := w.Foreign(); child != nil {
		t.Errorf("%s is reported as a conflict", described)
	}
	for _, step := range rules.Decide(w).Steps {
		for _, a := range slices.Concat(step...) {
			if a.Object.GetName() == spec.SecondaryServiceName(w.Set) {
				t.Errorf("unexpected write: %s", a)
			}
		}
	}
}

// patchOf returns the patch of a child in a plan. It returns nil if there is none.
func patchOf(p rules.Plan, child client.Object) client.Object {
	for _, chain := range slices.Concat(p.Steps...) {
		for _, a := range chain {
			if a.Verb == action.Patch && a.From == child {
				return a.Object
			}
		}
	}
	return nil
}

func TestRS47EditsOfTheStatefulSetAreUndone(t *testing.T) {
	for _, row := range []struct {
		name   string
		edit   func(*appsv1.StatefulSetSpec)
		mended time.Duration // the age of the last patch; 0 for none
		undone bool
	}{
		{"no edit", func(*appsv1.StatefulSetSpec) {}, 0, false},
		{"another first ordinal", func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5} }, 0, true},
		{"another first ordinal right after a patch", func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5} }, spec.MendPause / 2, false},
		{"minReadySeconds", func(s *appsv1.StatefulSetSpec) { s.MinReadySeconds = 60 }, 0, true},
		{"revisionHistoryLimit, which an old API server does not allow to change", func(s *appsv1.StatefulSetSpec) { s.RevisionHistoryLimit = ptr.To(int32(10)) }, 0, false},
		{"updateStrategy", func(s *appsv1.StatefulSetSpec) { s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType }, 0, true},
		{"the retention of claims", func(s *appsv1.StatefulSetSpec) {
			s.PersistentVolumeClaimRetentionPolicy.WhenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		}, 0, true},
	} {
		w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary())
		if row.mended > 0 {
			w.Mended = map[string]time.Time{facts.ChildKey(w.Stateful): fixture.Ago(row.mended)}
		}
		before := w.Stateful.Spec.DeepCopy()
		row.edit(&w.Stateful.Spec)
		p := rules.Decide(w)
		got := patchOf(p, w.Stateful)
		switch {
		case !row.undone:
			if got != nil {
				t.Errorf("%s: unexpected patch", row.name)
			}
		case got == nil:
			t.Errorf("%s: no patch", row.name)
		default:
			s := got.(*appsv1.StatefulSet).Spec
			if !apiequality.Semantic.DeepEqual(s, *before) {
				t.Errorf("%s: the patch results in %+v, want %+v", row.name, s, *before)
			}
		}
		if row.mended > 0 && p.Wait != spec.MendPause-row.mended {
			t.Errorf("%s: requeue after %s", row.name, p.Wait)
		}
	}
}

func TestRS47EditsOfServicesAreUndone(t *testing.T) {
	world := func() *facts.World {
		return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary())
	}
	edit := func(name string, change func(*corev1.ServiceSpec)) (w *facts.World, service *corev1.Service) {
		w = world()
		service = w.Services[name]
		change(&service.Spec)
		return w, service
	}
	toExternal := func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalName, s.ClusterIP = corev1.ServiceTypeExternalName, "elsewhere.example.com", ""
	}
	all, primary := spec.ServiceName(world().Set), world().Set.PrimaryServiceName()

	for name, ip := range map[string]string{all: corev1.ClusterIPNone, primary: ""} {
		w, service := edit(name, toExternal)
		got, _ := patchOf(rules.Decide(w), service).(*corev1.Service)
		if got == nil || got.Spec.Type != corev1.ServiceTypeClusterIP || got.Spec.ExternalName != "" || got.Spec.ClusterIP != ip {
			t.Errorf("type ExternalName of Service %s: the patch results in %+v", name, got)
		}
	}

	// The API server does not allow to change clusterIP. It is released first.
	w, service := edit(all, func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "10.0.0.1", []string{"10.0.0.1"} })
	got, _ := patchOf(rules.Decide(w), service).(*corev1.Service)
	if got == nil || got.Spec.Type != corev1.ServiceTypeExternalName {
		t.Fatalf("a cluster IP of the headless Service: the patch results in %+v", got)
	}
	w, service = edit(all, func(s *corev1.ServiceSpec) { *s = got.Spec; s.ClusterIP, s.ClusterIPs = "", nil })
	w.Mended = map[string]time.Time{facts.ChildKey(service): fixture.Ago(time.Millisecond)} // the first patch of two
	got, _ = patchOf(rules.Decide(w), service).(*corev1.Service)
	if got == nil || got.Spec.Type != corev1.ServiceTypeClusterIP || got.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("the released headless Service: the patch results in %+v", got)
	}

	// A Service of another owner, and the type that a user chose for clients, are kept.
	w, service = edit(primary, toExternal)
	service.OwnerReferences = nil
	if got := patchOf(rules.Decide(w), service); got != nil {
		t.Errorf("a Service without an owner: unexpected patch")
	}
	w, service = edit(primary, func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30000 })
	if got := patchOf(rules.Decide(w), service); got != nil {
		t.Errorf("type NodePort: unexpected patch")
	}
}
