package spec_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// TestZonesFixed verifies that a set with claims cannot switch between zones and no zones.
func TestZonesFixed(t *testing.T) {
	for _, row := range []struct {
		name    string
		was     []string
		version int64
		now     []string
		claims  bool
		want    int
	}{
		{"zones are added to a set with claims", nil, 1, []string{"a"}, true, 1},
		{"zones of a set with claims were added by mistake and are removed", nil, 1, nil, true, 0},
		{"zones are removed from a set with claims", []string{"a"}, 1, nil, true, 1},
		{"zones of a set with claims are replaced", []string{"a"}, 1, []string{"b"}, true, 0},
		{"zones are added to a set with claims before the first version", nil, 0, []string{"a"}, true, 0},
		{"zones are added to a set without claims", nil, 1, []string{"a"}, false, 0},
	} {
		old := fixture.Plain()
		if row.claims {
			old = fixture.Volumes()
		}
		old.Status.CurrentVersion = row.version
		for i, name := range row.was {
			old.Status.Zones = append(old.Status.Zones, v1alpha1.ZoneStatus{Name: name, Index: int32(i)})
		}
		set := old.DeepCopy()
		set.Spec.Zones = row.now
		if errs := spec.ValidateChange(old, set); len(errs) != row.want || row.want > 0 && errs[0].Field != "spec.zones" {
			t.Errorf("%s: %v", row.name, errs)
		}
	}
}

// invalid is an invalid set, with the prefix of each expected error.
type invalid struct {
	name   string
	change func(*v1alpha1.ExtendedStatefulSet)
	want   []string
}

func (r invalid) check(t *testing.T) {
	t.Helper()
	set := fixture.WithClaims(fixture.FakeSet(3))
	r.change(set)
	errs := spec.Validate(spec.WithDefaults(set))
	if len(errs) != len(r.want) {
		t.Errorf("%s: %v, want %q", r.name, errs, r.want)
		return
	}
	for i, err := range errs {
		if !strings.HasPrefix(err.Error(), r.want[i]) {
			t.Errorf("%s: %v, want %s", r.name, err, r.want[i])
		}
	}
}

// TestValidate verifies that validation also finds errors that the schema rejects, because the schema
// may be older.
func TestValidate(t *testing.T) {
	many := func(set *v1alpha1.ExtendedStatefulSet) {
		set.Spec.Template.Spec.VolumeClaimTemplates[0].Spec.AccessModes = append(set.Spec.Template.Spec.VolumeClaimTemplates[0].Spec.AccessModes, corev1.ReadWriteMany)
	}
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	for _, r := range []invalid{
		{"a valid set", func(*v1alpha1.ExtendedStatefulSet) {}, nil},
		{"the name of the operator's Service", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Template.Spec.ServiceName = "db-active" },
			[]string{`spec.template.spec.serviceName: Invalid value: "db-active": is reserved for the Service that selects the current version; choose another name`}},
		{"default replicas", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Template.Spec.Replicas = nil }, nil},
		{"negative replicas", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Template.Spec.Replicas = ptr.To[int32](-1) },
			[]string{`spec.template.spec.replicas: Invalid value: -1: must be 0 or more`}},
		{"replicas below scaling.min", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Scaling = &v1alpha1.Scaling{Min: ptr.To[int32](4)} },
			[]string{`spec.template.spec.replicas: Invalid value: 3: may not be less than scaling.min; take more replicas, or lower min first`}},
		{"replicas above scaling.max", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Scaling = &v1alpha1.Scaling{Max: ptr.To[int32](2)} },
			[]string{`spec.template.spec.replicas: Invalid value: 3: may not be more than scaling.max; take fewer replicas, or raise max first`}},
		{"even replicas with oddOnly", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Template.Spec.Replicas, set.Spec.Scaling = ptr.To[int32](4), &v1alpha1.Scaling{OddOnly: true}
		}, []string{`spec.template.spec.replicas: Invalid value: 4: scaling.oddOnly allows odd numbers only; take one more or one less, or remove oddOnly first`}},
		{"0 replicas with canaries", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Template.Spec.Replicas = ptr.To[int32](0) }, nil},
		{"canaries above the default replicas", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Template.Spec.Replicas, set.Spec.UpdateStrategy.Canaries = nil, ptr.To[int32](2)
		}, []string{`spec.updateStrategy.canaries: Invalid value: 2: may not be more than template.spec.replicas; lower canaries first, or take more replicas`}},
		{"invalid watch times", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.CanaryWatchTime, set.Spec.UpdateStrategy.UpdateWatchTime = minutes(0), minutes(-1)
		}, []string{`spec.updateStrategy.canaryWatchTime: Invalid value: "0s": must be more than 0, for example 5m`,
			`spec.updateStrategy.updateWatchTime: Invalid value: "-1m0s": must be more than 0, for example 5m`}},
		{"canaryWatchTime above updateWatchTime", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.UpdateStrategy.CanaryWatchTime = minutes(11) },
			[]string{`spec.updateStrategy.canaryWatchTime: Invalid value: "11m0s": may not be longer than updateWatchTime, which includes the canaries; shorten it, or lengthen updateWatchTime`}},
		{"Coexist with ReadWriteOnce and ReadWriteMany claims", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.Handover = v1alpha1.HandoverCoexist
			many(set)
		}, nil},
		{"invalid zones", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Zones = []string{"a", "", "a", "b/c"} }, []string{
			`spec.zones[1]: Required value: set the name of the zone, or remove the entry`, `spec.zones[2]: Duplicate value: "a"`,
			`spec.zones[3]: Invalid value: "b/c": is not a valid label value: `}},
		{"claims without name, with duplicate name, and without size", func(set *v1alpha1.ExtendedStatefulSet) {
			one := set.Spec.Template.Spec.VolumeClaimTemplates[0]
			nameless, sizeless := *one.DeepCopy(), *one.DeepCopy()
			nameless.Name, sizeless.Spec.Resources = "", corev1.VolumeResourceRequirements{}
			set.Spec.Template.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{one, nameless, sizeless}
		}, []string{`spec.template.spec.volumeClaimTemplates[1].metadata.name: Required value: volume mounts refer to the claim by this name`,
			`spec.template.spec.volumeClaimTemplates[2].metadata.name: Duplicate value: "data"`,
			`spec.template.spec.volumeClaimTemplates[2].spec.resources.requests.storage: Invalid value: "0": must be more than 0, for example 1Gi`}},
		{"an invalid selector", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Template.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
		}, []string{`spec.template.spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`}},
		{"no selector", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Template.Spec.Selector = nil },
			[]string{`spec.template.spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`}},
		{"a job with managedBy", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.PostUpdateJob = fixture.Job("x")
			set.Spec.UpdateStrategy.PostUpdateJob.Spec.ManagedBy = ptr.To("example.com/x")
		}, []string{`spec.updateStrategy.postUpdateJob.spec.managedBy: Forbidden: only the Job controller of Kubernetes may run these Jobs; remove it`}},
		{"a job with labels of the operator", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("x")
			set.Spec.UpdateStrategy.PreUpdateJob.Spec.Template.Labels = map[string]string{v1alpha1.LabelSet: "db"}
		}, []string{`spec.updateStrategy.preUpdateJob.spec.template.metadata.labels[fissile.cloudfoundry.org/extendedstatefulset]: Forbidden: keys with prefix fissile.cloudfoundry.org/ are reserved for the operator; remove it`}},
		{"E44 a job with an invalid pod template", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.PreUpdateJob = &v1alpha1.UpdateJob{Problem: `unknown field "spec.template.spec.container"`}
		}, []string{`spec.updateStrategy.preUpdateJob.spec.template: Invalid value: is not a valid pod template: unknown field "spec.template.spec.container"; correct or remove the named field`}},
		{"an empty spec", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec = v1alpha1.ExtendedStatefulSetSpec{} }, []string{
			`spec.template.spec.selector: Required value`, `spec.template.spec.template.spec.containers: Required value: a pod must have at least one container`}},
	} {
		r.check(t)
	}
}

func TestValidateBudget(t *testing.T) {
	for _, r := range []invalid{
		{"E40 an empty budget", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.PodDisruptionBudget = &v1alpha1.DisruptionBudget{} },
			[]string{`spec.podDisruptionBudget: Invalid value: {}: must have either minAvailable or maxUnavailable; set one of them`}},
		{"E40 a budget with a value that is not a number", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.PodDisruptionBudget = &v1alpha1.DisruptionBudget{MaxUnavailable: ptr.To(intstr.FromString("many"))}
		}, []string{`spec.podDisruptionBudget.maxUnavailable: Invalid value: "many": must be a number from 0 to 1000, or a percentage from 0% to 100%`}},
		{"E40 a budget with a negative number", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.PodDisruptionBudget = &v1alpha1.DisruptionBudget{MinAvailable: ptr.To(intstr.FromInt32(-1))}
		}, []string{`spec.podDisruptionBudget.minAvailable: Invalid value: "-1": must be a number from 0 to 1000, or a percentage from 0% to 100%`}},
		{"E40 a valid budget", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.PodDisruptionBudget = &v1alpha1.DisruptionBudget{MinAvailable: ptr.To(intstr.FromString("50%"))}
		}, nil},
	} {
		r.check(t)
	}
}

// TestTheLongestNamesFit verifies that the names of all children are valid for the longest accepted
// name.
func TestTheLongestNamesFit(t *testing.T) {
	for _, zones := range [][]string{nil, {"a"}} {
		set := fixture.WithClaims(fixture.FakeSet(3))
		set.Spec.Zones = zones
		for set.Name = "x"; len(spec.ValidateName(set, nil)) == 0; set.Name += "x" {
			z := children.Zone{Index: children.NoZone}
			if zones != nil {
				z = children.Zone{Name: "a", Index: 99}
			}
			child := children.ChildName(set.Name, z, 99999)
			for what, n := range map[string]int{
				"a revision of " + child: len(child) + 1 + 10,
				"a pod " + child:         len(child) + len("-999999"),
				"a Job " + children.JobName(set.Name, children.PostJob, 99999, 101): len(children.JobName(set.Name, children.PostJob, 99999, 101)),
				"a Service " + spec.ActiveService(set):                              len(spec.ActiveService(set)),
			} {
				if n > 63 {
					t.Fatalf("%s has %d characters", what, n)
				}
			}
		}
		if len(set.Name) < 41 {
			t.Errorf("zones %v: max length of names is %d, want at least 40", zones, len(set.Name)-1)
		}
	}
}

// TestV11HandoverMayChangeBeforeThereIsAnUpgrade verifies V11: a change of handover is rejected only
// while two versions have pods.
func TestV11HandoverMayChangeBeforeThereIsAnUpgrade(t *testing.T) {
	const refused = "handover cannot be changed during an upgrade"
	first := v1alpha1.ExtendedStatefulSetStatus{Phase: v1alpha1.PhasePromoting, CurrentVersion: 1}
	upgrade := v1alpha1.ExtendedStatefulSetStatus{Phase: v1alpha1.PhasePromoting, CurrentVersion: 1, UpdateVersion: 2, Update: &v1alpha1.UpdateStatus{}}
	perOrdinal := func(set *v1alpha1.ExtendedStatefulSet) {
		set.Spec.UpdateStrategy.Handover = v1alpha1.HandoverPerOrdinal
	}
	claims := func(set *v1alpha1.ExtendedStatefulSet) { fixture.WithClaims(set) }
	for _, row := range []struct {
		name   string
		status v1alpha1.ExtendedStatefulSetStatus
		change func(*v1alpha1.ExtendedStatefulSet)
		want   bool
	}{
		{"handover is changed while the first version starts", first, perOrdinal, false},
		{"claims are added while the first version starts", first, claims, false},
		{"claims are added during an upgrade", upgrade, claims, false},
		{"handover is changed during an upgrade", upgrade, perOrdinal, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := fixture.FakeSet(3)
			old.Status = row.status
			set := old.DeepCopy()
			row.change(set)
			said := spec.ValidateChange(spec.WithDefaults(old), spec.WithDefaults(set)).ToAggregate()
			if got := said != nil && strings.Contains(said.Error(), refused); got != row.want {
				t.Errorf("got %v", said)
			}
		})
	}
}
