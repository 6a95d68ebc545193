package children_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestChildren tests RS-2 to RS-9 and RS-46: all children of a set are in testdata, where they can
// be reviewed.
func TestChildren(t *testing.T) {
	for file, wanted := range map[string]string{"seed.yaml": "seed-children.yaml", "full.yaml": "full-children.yaml"} {
		t.Run(file, func(t *testing.T) {
			set := fixture.Read(t, file)
			objects := []client.Object{children.BuildStatefulSet(set, *set.Spec.Replicas, children.Hashes{Rules: "abc"}), children.BuildBudget(set)}
			for _, service := range children.BuildServices(set) {
				objects = append(objects, service)
			}
			var documents []string
			for _, object := range objects {
				documents = append(documents, fixture.Manifest(t, object))
			}
			golden.Check(t, filepath.Join("..", "testdata", wanted), strings.Join(documents, "---\n"))
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
			set := fixture.SetOf(r.replicas, r.primaries, r.without...)
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

// TestWhatRestartsAMember tests RS-57 and RS-58: which changes recreate a member, and which do not.
func TestWhatRestartsAMember(t *testing.T) {
	before := fixture.Template(t, "full.yaml", func(*v1alpha1.ReplicatedStatefulSet) {}).Annotations[v1alpha1.AnnotationTemplate]
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
		after := fixture.Template(t, "full.yaml", r.change).Annotations[v1alpha1.AnnotationTemplate]
		if restarts := after != before; restarts != r.restarts {
			t.Errorf("%s: a member is recreated: %v", r.name, restarts)
		}
	}
	if rules := children.BuildTemplate(fixture.Read(t, "full.yaml"), children.Hashes{Rules: "abc"}).Annotations[v1alpha1.AnnotationTemplate]; rules == before {
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
		pod := fixture.Template(t, "seed.yaml", r.change)
		if got := reflect.DeepEqual(pod.Finalizers, []string{v1alpha1.FinalizerMember}); got != r.want {
			t.Errorf("%s: finalizers %v", r.name, pod.Finalizers)
		}
	}
}

// TestBuildingChangesNothing tests that building from the stored object returns the same result
// again.
func TestBuildingChangesNothing(t *testing.T) {
	set := fixture.Read(t, "full.yaml")
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
	set := fixture.Read(t, "seed.yaml")
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

// TestTheSampleIsTheOriginalsManifest tests that the sample, which users and an acceptance test on
// real nodes apply, equals the original's manifest except for comments.
func TestTheSampleIsTheOriginalsManifest(t *testing.T) {
	var original, sample map[string]any
	for path, into := range map[string]*map[string]any{
		filepath.Join("..", "testdata", "seed.yaml"): &original, "../../../config/samples/replicatedstatefulset/dummy.yaml": &sample,
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
