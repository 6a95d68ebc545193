package replicatedstatefulset

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestChildren tests RS-2 to RS-9 and RS-46: all children of a set are in testdata, where they can
// be reviewed.
func TestChildren(t *testing.T) {
	for file, wanted := range map[string]string{"seed.yaml": "seed-children.yaml", "full.yaml": "full-children.yaml"} {
		t.Run(file, func(t *testing.T) {
			set := read(t, file)
			objects := []client.Object{children.BuildStatefulSet(set, *set.Spec.Replicas, children.Hashes{Rules: "abc"}), children.BuildBudget(set)}
			for _, service := range children.BuildServices(set) {
				objects = append(objects, service)
			}
			var documents []string
			for _, object := range objects {
				documents = append(documents, manifest(t, object))
			}
			golden.Check(t, filepath.Join("testdata", wanted), strings.Join(documents, "---\n"))
		})
	}
}

func TestRS131ServiceOfSecondaries(t *testing.T) {
	for _, r := range []struct {
		name                         string
		replicas, primaries, stopped int32
		without                      []string // commands
		want                         bool
	}{
		{"one primary of three, with a command secondary", 3, 1, 0, nil, true},
		{"one primary of three, without a command secondary", 3, 1, 0, []string{v1alpha1.CommandSecondary}, false},
		{"all members are primary", 3, 3, 0, nil, false},
		{"a stopped set that had three members", 0, 1, 3, nil, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			set := setOf(r.replicas, r.primaries, r.without...)
			set.Status.RestoreReplicas = r.stopped
			i := slices.IndexFunc(children.BuildServices(set), func(s *corev1.Service) bool { return s.Name == set.Name+"-secondary" })
			if i >= 0 != r.want {
				t.Fatalf("the Service is created: %t", i >= 0)
			}
			for _, service := range children.BuildServices(set) {
				if service.Spec.Selector[v1alpha1.LabelManaged] != v1alpha1.True {
					t.Errorf("Service %s selects pods without label %s", service.Name, v1alpha1.LabelManaged)
				}
			}
			if r.want {
				if selector := children.BuildServices(set)[i].Spec.Selector; selector[v1alpha1.LabelRole] != v1alpha1.RoleSecondary || selector[v1alpha1.LabelApp] != set.Name {
					t.Errorf("the selector is %v", selector)
				}
			}
		})
	}
}

// read reads a set from testdata and checks that it is valid.
func read(t *testing.T, file string) *v1alpha1.ReplicatedStatefulSet {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	set := &v1alpha1.ReplicatedStatefulSet{}
	if err := yaml.UnmarshalStrict(text, set); err != nil {
		t.Fatal(err)
	}
	set = spec.WithDefaults(set)
	if errs := append(spec.Validate(set), spec.ValidateOverrides(set)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return set
}

// manifest returns an object as kubectl would show it.
func manifest(t *testing.T, object client.Object) string {
	t.Helper()
	gvk, err := apiutil.GVKForObject(object, clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	delete(tree, "status")
	text, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// template returns the pod template of a changed set.
func template(t *testing.T, file string, change func(*v1alpha1.ReplicatedStatefulSet)) corev1.PodTemplateSpec {
	t.Helper()
	set := read(t, file)
	change(set)
	return children.BuildTemplate(set, children.Hashes{})
}

// TestWhatRestartsAMember tests RS-57 and RS-58: which changes recreate a member, and which do not.
func TestWhatRestartsAMember(t *testing.T) {
	before := template(t, "full.yaml", func(*v1alpha1.ReplicatedStatefulSet) {}).Annotations[v1alpha1.AnnotationTemplate]
	for _, r := range []struct {
		name     string
		restarts bool
		change   func(*v1alpha1.ReplicatedStatefulSet)
	}{
		{"an image", true, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[1].Image = "db:2" }},
		{"an init container", true, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.InitContainers = nil }},
		{"a label of the pods", true, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Labels["tier"] = "front" }},
		{"an annotation of the pods", true, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Annotations = nil }},
		{"a node selector", true, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.NodeSelector["arch"] = "arm64" }},
		{"a secret", true, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Secrets = nil }},
		{"the chaos level", true, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ChaosLevel = nil }},
		{"the preStop command", true, func(s *v1alpha1.ReplicatedStatefulSet) { delete(s.Spec.Pod.Commands, "preStop") }},
		{"a command other than preStop", false, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Commands["status"] = v1alpha1.Command{Command: []string{"/other"}, Timeout: "5m"}
		}},
		{"the number of members", false, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = ptr.To(int32(5)) }},
		{"the number of primaries, which changes the finalizer", false, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Primaries = nil }},
		{"a label of the object", false, func(s *v1alpha1.ReplicatedStatefulSet) { s.Labels["helm.sh/chart"] = "db-2" }},
		{"an order", false, func(s *v1alpha1.ReplicatedStatefulSet) { delete(s.Annotations, v1alpha1.AnnotationSeedFrom) }},
		{"ports", false, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ServicePorts = nil }},
	} {
		after := template(t, "full.yaml", r.change).Annotations[v1alpha1.AnnotationTemplate]
		if restarts := after != before; restarts != r.restarts {
			t.Errorf("%s: a member is recreated: %v", r.name, restarts)
		}
	}
	if rules := children.BuildTemplate(read(t, "full.yaml"), children.Hashes{Rules: "abc"}).Annotations[v1alpha1.AnnotationTemplate]; rules == before {
		t.Error("changed rules recreate no member")
	}
}

// TestWhoHasTheFinalizer tests that only pods whose second copy could do harm have the finalizer,
// because it delays their deletion.
func TestWhoHasTheFinalizer(t *testing.T) {
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.ReplicatedStatefulSet)
		want   bool
	}{
		{"all members are primaries without claims", func(*v1alpha1.ReplicatedStatefulSet) {}, false},
		{"fewer primaries than members", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Primaries = ptr.To(int32(2)) }, true},
		{"primaries equals replicas", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Primaries = ptr.To(int32(3)) }, false},
		{"claims", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		}, true},
	} {
		pod := template(t, "seed.yaml", r.change)
		if got := reflect.DeepEqual(pod.Finalizers, []string{v1alpha1.FinalizerMember}); got != r.want {
			t.Errorf("%s: finalizers %v", r.name, pod.Finalizers)
		}
	}
}

// TestAntiAffinityReallyKeepsApart tests RS-7: the term exists once and selects the built pods.
func TestAntiAffinityReallyKeepsApart(t *testing.T) {
	set := read(t, "seed.yaml")
	set.Spec.Affinity = children.Affinity(set)
	pod := children.BuildTemplate(set, children.Hashes{})
	terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 1 || terms[0].TopologyKey != "kubernetes.io/hostname" {
		t.Fatalf("terms %v", terms)
	}
	for _, has := range []map[string]string{pod.Labels, children.BuildStatefulSet(set, 3, children.Hashes{}).Spec.Template.Labels} {
		for key, value := range terms[0].LabelSelector.MatchLabels {
			if has[key] != value {
				t.Errorf("the pods' %s is %q, and the term selects %q", key, has[key], value)
			}
		}
	}
	if pod := template(t, "seed.yaml", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.AntiAffinity = false }); pod.Spec.Affinity != nil {
		t.Errorf("unexpected affinity %v", pod.Spec.Affinity)
	}
}

func TestTheContainersOwnWordStands(t *testing.T) {
	own := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
	pod := template(t, "full.yaml", func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Containers[1].Lifecycle = own
		s.Spec.Pod.Containers[1].Resources.Limits = corev1.ResourceList{}
		s.Spec.Pod.Container = "log"
	})
	if got := pod.Spec.Containers[1].Lifecycle; !reflect.DeepEqual(got, own) {
		t.Errorf("another container's hook is %v", got)
	}
	if got := pod.Spec.Containers[0]; got.Lifecycle == nil || got.Lifecycle.PreStop.Exec == nil || got.Resources.Requests != nil {
		t.Errorf("the commands' container has %v, %v", got.Lifecycle, got.Resources)
	}
	pod = template(t, "full.yaml", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[1].Lifecycle = own })
	if got := pod.Spec.Containers[1].Lifecycle; !reflect.DeepEqual(got, own) {
		t.Errorf("the hook is %v", got)
	}
}

// TestChaos tests RS-56.
func TestChaos(t *testing.T) {
	for level, want := range map[int32]string{-1: "", 0: "", 1: "CHAOS_LEVEL=1 CHAOS_MODULO=19", 20: "CHAOS_LEVEL=20 CHAOS_MODULO=0"} {
		pod := template(t, "seed.yaml", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ChaosLevel = &level })
		var got []string
		for _, e := range pod.Spec.Containers[0].Env[3:] {
			got = append(got, e.Name+"="+e.Value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("level %d: %v", level, got)
		}
	}
}

// TestNothingPrivilegedIsAdded tests that a user's pod that a restricted namespace accepts is still
// accepted with the operator's additions.
func TestNothingPrivilegedIsAdded(t *testing.T) {
	restricted := &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	pod := template(t, "full.yaml", func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		s.Spec.Pod.InitContainers[0].SecurityContext = restricted
		for i := range s.Spec.Pod.Containers {
			s.Spec.Pod.Containers[i].SecurityContext = restricted
		}
	})
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range evaluator.EvaluatePod(psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		if !fault.Allowed {
			t.Errorf("%s: %s", fault.ForbiddenReason, fault.ForbiddenDetail)
		}
	}
}

func TestOrdinals(t *testing.T) {
	set := read(t, "seed.yaml")
	for pod, want := range map[string]int{"rss-example-0": 0, "rss-example-10": 10, "rss-example-01": -1, "rss-example--1": -1,
		"rss-example-": -1, "rss-example": -1, "rss-example-1-1": -1, "example-1": -1, "rss-other-1": -1, "rss-example-99999999999999999999": -1} {
		got, ok := spec.OrdinalOf(set, pod)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%s: %d, want %d", pod, got, want)
		}
	}
}

// TestBuildingChangesNothing tests that building from the stored object returns the same result
// again.
func TestBuildingChangesNothing(t *testing.T) {
	set := read(t, "full.yaml")
	before := set.DeepCopy()
	var first *appsv1.StatefulSet
	for range 3 {
		built := children.BuildStatefulSet(set, 3, children.Hashes{Rules: "abc"})
		children.BuildServices(set)
		if first == nil {
			first = built
		}
		if !reflect.DeepEqual(built, first) {
			t.Fatal("two builds of the same set differ")
		}
	}
	if !reflect.DeepEqual(set, before) {
		t.Error("the build modified the set")
	}
}

func TestRS8PortsAreAsTheAPIServerStoresThem(t *testing.T) {
	stored := func(name string, port int32, target intstr.IntOrString) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP, TargetPort: target}
	}
	set := read(t, "seed.yaml")
	set.Spec.ServicePorts = []corev1.ServicePort{
		{Name: "bare", Port: 1}, {Name: "zero", Port: 2, TargetPort: intstr.FromInt32(0)}, {Name: "empty", Port: 3, TargetPort: intstr.FromString("")},
		{Name: "named", Port: 4, TargetPort: intstr.FromString("http")}, {Name: "other", Port: 5, TargetPort: intstr.FromInt32(50)},
	}
	want := []corev1.ServicePort{
		stored("bare", 1, intstr.FromInt32(1)), stored("zero", 2, intstr.FromInt32(2)), stored("empty", 3, intstr.FromInt32(3)),
		stored("named", 4, intstr.FromString("http")), stored("other", 5, intstr.FromInt32(50)),
	}
	if got := children.PortsOf(set); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestNothingActsInATrial(t *testing.T) {
	set := setOf(3, 1)
	set.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "1m"}
	trial, err := children.NewTrial(set, 2)
	if err != nil {
		t.Fatal(err)
	}
	sts, owners := trial.StatefulSet, slices.Clone(trial.StatefulSet.OwnerReferences)
	for _, service := range trial.Services {
		owners = append(owners, service.OwnerReferences...)
		if service.Spec.Selector[v1alpha1.LabelApp] != sts.Spec.Template.Labels[v1alpha1.LabelApp] {
			t.Errorf("Service %s selects %v, and the pods have %v", service.Name, service.Spec.Selector, sts.Spec.Template.Labels)
		}
	}
	if *sts.Spec.Replicas != 2 || len(sts.Spec.Template.Finalizers)+len(owners) > 0 {
		t.Errorf("%d pods with finalizers %v, owners %v; want 2 pods without finalizers and owners", *sts.Spec.Replicas, sts.Spec.Template.Finalizers, owners)
	}
	if trial.Container != "main" || trial.Timeouts["stop"] != time.Minute || len(trial.Services) != 4 || trial.Services[0].Name != sts.Spec.ServiceName {
		t.Errorf("container %q, stop within %s, %d Services, the first that of %q", trial.Container, trial.Timeouts["stop"], len(trial.Services), sts.Spec.ServiceName)
	}
	delete(set.Spec.Pod.Commands, "status")
	if _, err := children.NewTrial(set, 2); err == nil {
		t.Error("a trial is built for a set without the command status")
	}
}

// TestTheSampleIsTheOriginalsManifest tests that the sample, which users and an acceptance test on
// real nodes apply, equals the original's manifest except for comments.
func TestTheSampleIsTheOriginalsManifest(t *testing.T) {
	var original, sample map[string]any
	for path, into := range map[string]*map[string]any{
		filepath.Join("testdata", "seed.yaml"): &original, "../../config/samples/replicatedstatefulset/dummy.yaml": &sample,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(original, sample) {
		t.Errorf("the sample is\n%v\nwant the original's manifest\n%v", sample, original)
	}
}

func TestRS131ServiceOfThatNameOfAnotherOwner(t *testing.T) {
	w := worldOf(setOf(3, 1))
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
