package children_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy/policytest"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// guard is the API server's own plugin for ValidatingAdmissionPolicies, with our policy and
// binding, and with the StatefulSingletons that it finds.
type guard struct {
	t      testing.TB
	plugin *validating.Plugin
	scheme *runtime.Scheme
}

// theOperator is the only user that may update the status of StatefulSingletons.
const theOperator = "system:serviceaccount:operator-system:manager"

// newGuard returns a guard for these namespaces, or for all.
func newGuard(t testing.TB, watched []string, objects ...*v1.StatefulSingleton) *guard {
	t.Helper()
	policy, binding := children.BuildGuard("operator-system", watched)
	return startGuard(t, []runtime.Object{policy, binding}, objects...)
}

// startGuard returns the plugin with these policies and bindings.
func startGuard(t testing.TB, existing []runtime.Object, objects ...*v1.StatefulSingleton) *guard {
	t.Helper()
	g := &guard{t: t, scheme: runtime.NewScheme()}
	if err := clientgoscheme.AddToScheme(g.scheme); err != nil {
		t.Fatal(err)
	}
	kind := v1.GroupVersion.WithKind("StatefulSingleton")
	var params []runtime.Object
	namespaces := map[string]bool{"ns": true, "elsewhere": true}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		param := &unstructured.Unstructured{Object: content}
		param.SetGroupVersionKind(kind)
		params = append(params, param)
		namespaces[o.Namespace] = true
	}
	for name := range namespaces {
		existing = append(existing, policytest.Namespace(name))
	}
	resource := v1.GroupVersion.WithResource("statefulsingletons")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1.GroupVersion})
	mapper.AddSpecific(kind, resource, resource, meta.RESTScopeNamespace)
	dynamicClient := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "StatefulSingletonList"}, params...)
	g.plugin = policytest.NewPlugin(t, policytest.Cluster{Existing: existing, Dynamic: dynamicClient, Mapper: mapper,
		Authorizer: authorizer.AuthorizerFunc(statusOnlyByTheOperator)})
	return g
}

func statusOnlyByTheOperator(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == "update" && a.GetResource() == "statefulsingletons" && a.GetSubresource() == "status" && a.GetAPIGroup() == v1.GroupVersion.Group &&
		a.GetNamespace() == "ns" && a.GetUser().GetName() == theOperator {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// create returns the API server's response to a pod after mutating admission; "" if it is
// admitted.
func (g *guard) create(p *corev1.Pod) string { return g.ask(p, nil, admission.Create, "a-user") }

// update returns the API server's response to a change of a pod.
func (g *guard) update(old, p *corev1.Pod, who string) string {
	return g.ask(p, old, admission.Update, who)
}

func (g *guard) ask(p, old *corev1.Pod, operation admission.Operation, who string) string {
	var before runtime.Object
	if old != nil {
		before = old
	}
	attributes := admission.NewAttributesRecord(p, before, corev1.SchemeGroupVersion.WithKind("Pod"), p.Namespace, p.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, &user.DefaultInfo{Name: who})
	if err := g.plugin.Validate(context.Background(), attributes, admission.NewObjectInterfacesFromScheme(g.scheme)); err != nil {
		return err.Error()
	}
	return ""
}

const (
	denied     = `pods "db-1" is forbidden: ValidatingAdmissionPolicy 'statefulsingleton-guard-operator-system' with binding 'statefulsingleton-guard-operator-system' denied request: `
	noGate     = `StatefulSingleton db selects this pod, but the pod was created without the gate that holds back its program: the operator did not respond, or the StatefulSingleton has just been created. The pod is refused because two programs could run otherwise. Its owner will retry; if that does not help, check whether the operator is running: kubectl -n operator-system get pods`
	relabelled = `StatefulSingleton db selects by these labels: this change would add a pod that may be running to its selection, or remove one, so that two programs could run. Delete the pod instead, or change the labels in its template`
	remade     = `StatefulSingleton db selects this pod: annotation apps.statefulsingleton.com/singleton-uid is immutable, because it records the StatefulSingleton under which the pod was created`
	forged     = `StatefulSingleton db starts one pod at a time: only the operator may change annotation apps.statefulsingleton.com/grant, which starts the program`
)

func responseOf(want string) string {
	if want == "" {
		return ""
	}
	return denied + want
}

// TestTheGuardOnCreate checks the API server's response to new pods with and without the
// mutation by the webhook.
func TestTheGuardOnCreate(t *testing.T) {
	db := fixture.Singleton("db")
	gone := fixture.Singleton("gone").Selecting(fixture.Labelled("app", "gone")).Deleted()
	going := fixture.Singleton("going").Selecting(fixture.Labelled("app", "going")).Deleted()
	going.Finalizers = []string{"example.com/other", v1.FinalizerSingleton}
	gone.Finalizers = []string{"example.com/other"}
	g := newGuard(t, nil, &db.StatefulSingleton, &gone.StatefulSingleton, &going.StatefulSingleton)
	writable := fixture.Injected(t, &fixture.Pod().Inits(fixture.Container("own")).Pod, db)
	writable.Spec.InitContainers[1].VolumeMounts = []corev1.VolumeMount{{Name: v1.VolumeGate, MountPath: "/gate"}}
	inConfigMap := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db").Mode(v1.GateScript))
	inConfigMap.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"S16 a matching pod without its gate", &fixture.Pod().Pod, noGate},
		{"a pod whose init container can write to the gate", writable, noGate},
		{"a pod whose script is in a ConfigMap, which other clients can change", inConfigMap, noGate},
		{"a matching pod with its gate", fixture.Injected(t, &fixture.Pod().Pod, db), ""},
		{"a pod that is not selected", &fixture.Pod().With(func(p *corev1.Pod) { p.Labels["app"] = "web" }).Pod, ""},
		{"a pod without labels that is not selected", &fixture.Pod().With(func(p *corev1.Pod) { p.Labels = nil }).Pod, ""},
		{"a pod in a namespace without StatefulSingletons", &fixture.Pod().With(func(p *corev1.Pod) { p.Namespace = "elsewhere" }).Pod, ""},
		{"W14 a pod of a terminating object with our finalizer", &fixture.Pod().With(func(p *corev1.Pod) { p.Labels["app"] = "going" }).Pod, strings.ReplaceAll(noGate, "StatefulSingleton db", "StatefulSingleton going")},
		{"W14 a pod of a terminating object without our finalizer", &fixture.Pod().With(func(p *corev1.Pod) { p.Labels["app"] = "gone" }).Pod, ""},
		{"a mirror pod of a static pod", &fixture.Pod().With(func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}).Pod, ""},
	} {
		if got := g.create(r.pod); got != responseOf(r.want) {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, responseOf(r.want))
		}
	}
}

// TestTheGuardOnUpdate checks the API server's response to changes of running pods.
func TestTheGuardOnUpdate(t *testing.T) {
	db := fixture.Singleton("db")
	g := newGuard(t, nil, &db.StatefulSingleton)
	held := fixture.Injected(t, &fixture.Pod().Pod, db)
	granted := held.DeepCopy()
	granted.Annotations[v1.AnnotationGrant] = children.GrantOf("uid", 1)
	for _, r := range []struct {
		name   string
		old    *corev1.Pod
		change func(*corev1.Pod)
		who    string
		want   string
	}{
		{"H11 a pod leaves its selector", held, func(p *corev1.Pod) { p.Labels["app"] = "debug" }, "a-user", relabelled},
		{"H11 a pod loses all labels", held, func(p *corev1.Pod) { p.Labels = nil }, "a-user", relabelled},
		{"a pod that was not selected joins a selector", &fixture.Pod().With(func(p *corev1.Pod) { p.Labels = nil }).Pod, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }, "a-user", relabelled},
		{"a pod leaves its selector by a write of the operator", held, func(p *corev1.Pod) { p.Labels["app"] = "debug" }, theOperator, relabelled},
		{"a terminating pod leaves its selector", held, func(p *corev1.Pod) { p.DeletionTimestamp, p.Labels = &metav1.Time{}, nil }, "a-user", relabelled},
		{"a pod that has ended leaves its selector", held, func(p *corev1.Pod) { p.Labels["app"] = "debug" }, "ended", ""},
		{"a pod with a terminal phase and our finalizer leaves its selector", held, func(p *corev1.Pod) { p.Labels["app"] = "debug" }, "garbage", relabelled},
		{"S6 another label is changed", held, func(p *corev1.Pod) { p.Labels["tier"] = "one" }, "a-user", ""},
		{"S6 an annotation is changed", held, func(p *corev1.Pod) { p.Annotations["note"] = "x" }, "a-user", ""},
		{"S6 a finalizer is removed", held, func(p *corev1.Pod) { p.Finalizers = nil }, "a-user", ""},
		{"S6 an owner is added", held, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "rs"}} }, "a-user", ""},
		{"labels of a pod that is not selected", &fixture.Pod().With(func(p *corev1.Pod) { p.Labels["app"] = "web" }).Pod, func(p *corev1.Pod) { p.Labels = nil }, "a-user", ""},
		{"H10 a grant by another client", held, func(p *corev1.Pod) { p.Annotations[v1.AnnotationGrant] = children.GrantOf("uid", 1) }, "a-user", forged},
		{"a grant by the operator", held, func(p *corev1.Pod) { p.Annotations[v1.AnnotationGrant] = children.GrantOf("uid", 1) }, theOperator, ""},
		{"a grant removed by another client", granted, func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationGrant) }, "a-user", forged},
		{"annotation singleton-uid is changed", held, func(p *corev1.Pod) { p.Annotations[v1.AnnotationSingletonUID] = "uid-of-another" }, "a-user", remade},
		{"annotation singleton-uid is removed", held, func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationSingletonUID) }, "a-user", remade},
		{"annotation singleton-uid of a pod that is not selected is changed", &fixture.Pod().With(func(p *corev1.Pod) { p.Labels["app"] = "web" }).Pod, func(p *corev1.Pod) { p.Annotations = map[string]string{v1.AnnotationSingletonUID: "x"} }, "a-user", ""},
		{"an unchanged grant", granted, func(p *corev1.Pod) { p.Labels["tier"] = "one" }, "a-user", ""},
	} {
		old := r.old.DeepCopy()
		switch r.who {
		case "ended":
			old.Status.Phase = corev1.PodSucceeded
		case "garbage":
			old.Status.Phase, old.Finalizers = corev1.PodFailed, []string{"example.com/other", v1.FinalizerPod}
		}
		now := old.DeepCopy()
		r.change(now)
		if got := g.update(old, now, r.who); got != responseOf(r.want) {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, responseOf(r.want))
		}
	}
}

// TestTheGuardAsksEveryObject checks that the policy is evaluated once for each object of
// the namespace, and that a single denial is enough.
func TestTheGuardAsksEveryObject(t *testing.T) {
	var objects []*v1.StatefulSingleton
	for i := range 20 {
		objects = append(objects, &fixture.Singleton(fmt.Sprintf("other%d", i)).Selecting(fixture.Labelled("app", fmt.Sprintf("other%d", i))).StatefulSingleton)
	}
	g := newGuard(t, nil, append(objects, &fixture.Singleton("db").StatefulSingleton)...)
	if got := g.create(&fixture.Pod().Pod); got != responseOf(noGate) {
		t.Errorf("with one matching object of 21: %q", got)
	}
	if got := g.create(&fixture.Pod().With(func(p *corev1.Pod) { p.Labels["app"] = "web" }).Pod); got != "" {
		t.Errorf("without a matching object of 21: %q", got)
	}
}

func TestTheGuardKeepsToItsNamespaces(t *testing.T) {
	elsewhere := fixture.Singleton("db")
	elsewhere.Namespace = "elsewhere"
	g := newGuard(t, []string{"ns"}, &fixture.Singleton("db").StatefulSingleton, &elsewhere.StatefulSingleton)
	if got := g.create(&fixture.Pod().Pod); got != responseOf(noGate) {
		t.Errorf("in a watched namespace: %q", got)
	}
	if got := g.create(&fixture.Pod().With(func(p *corev1.Pod) { p.Namespace = "elsewhere" }).Pod); got != "" {
		t.Errorf("in another: %q", got)
	}
}

// TestTheGuardBearsAnyObject checks that an object that bypassed every validation does not
// deny pods that it does not select.
func TestTheGuardBearsAnyObject(t *testing.T) {
	for name, s := range map[string]*fixture.SingletonFixture{
		"an empty selector":                  fixture.Singleton("db").Selecting(metav1.LabelSelector{}),
		"no selector":                        {StatefulSingleton: v1.StatefulSingleton{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}},
		"operator In without values":         fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.In))),
		"an unknown operator":                fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", "Near", "db"))),
		"operator NotIn without values":      fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.NotIn))),
		"operator Exists with values":        fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.Exists, "x"))),
		"a selector that contradicts itself": fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.Exists), fixture.Asking("app", fixture.Absent))),
	} {
		g := newGuard(t, nil, &s.StatefulSingleton)
		for _, p := range []*corev1.Pod{&fixture.Pod().Pod, &fixture.Pod().With(func(p *corev1.Pod) { p.Labels = nil }).Pod} {
			if got := g.create(p); got != "" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// TestTheGuardBearsTheLargestObject checks the cost of the largest object. The API server
// aborts an evaluation that is too expensive, which denies the pod.
func TestTheGuardBearsTheLargestObject(t *testing.T) {
	s := fixture.Singleton("db")
	have := map[string]string{}
	values := []string{}
	for i := range 500 {
		values = append(values, fmt.Sprintf("%s%d", strings.Repeat("v", 50), i))
	}
	for i := range 32 {
		key := fmt.Sprintf("example.com/%s%d", strings.Repeat("k", 40), i)
		s.Spec.Selector.MatchLabels[key], have[key] = values[499], values[499]
		s.Spec.Selector.MatchExpressions = append(s.Spec.Selector.MatchExpressions, fixture.Asking(key, fixture.In, values...), fixture.Asking("other"+key, fixture.NotIn, values...))
	}
	have["app"] = "db"
	s.Spec.Selector.MatchExpressions = s.Spec.Selector.MatchExpressions[:32]
	large := fixture.Pod().With(func(p *corev1.Pod) {
		p.Labels = have
		for i := range 60 {
			p.Spec.Containers = append(p.Spec.Containers, fixture.Container(fmt.Sprintf("c%d", i)).WithCommand(values...).Container)
			p.Spec.InitContainers = append(p.Spec.InitContainers, fixture.Container(fmt.Sprintf("i%d", i)).WithCommand(values...).Container)
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i)})
			for j := range 40 {
				m := corev1.VolumeMount{Name: fmt.Sprintf("v%d", j), MountPath: fmt.Sprintf("/%s/%d", values[j], j)}
				p.Spec.Containers[len(p.Spec.Containers)-1].VolumeMounts = append(p.Spec.Containers[len(p.Spec.Containers)-1].VolumeMounts, m)
			}
		}
	})
	g := newGuard(t, nil, &s.StatefulSingleton)
	if got := g.create(&large.Pod); got != responseOf(noGate) {
		t.Errorf("a pod without its gate: %q", got)
	}
	if got := g.create(fixture.Injected(t, &large.Pod, s.Mode(v1.GateBinary))); got != "" {
		t.Errorf("a pod with its gate: %q", got)
	}
}

// BenchmarkGuard measures the cost of the guard for a pod in a namespace with that many
// objects.
func BenchmarkGuard(b *testing.B) {
	for _, count := range []int{1, 10, spec.MaxPerNamespace} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			var objects []*v1.StatefulSingleton
			for i := range count {
				objects = append(objects, &fixture.Singleton(fmt.Sprintf("s%d", i)).Selecting(fixture.Labelled("app", fmt.Sprint(i))).StatefulSingleton)
			}
			g := newGuard(b, nil, objects...)
			p := &fixture.Pod().Pod
			for b.Loop() {
				g.create(p)
			}
		})
	}
}

// TestTheGuardSelectsAsLabelsDo checks that the selector in CEL is equivalent to
// labels.Selector, with random selectors in one namespace each and all pods that they can
// distinguish.
func TestTheGuardSelectsAsLabelsDo(t *testing.T) {
	var objects []*v1.StatefulSingleton
	for seed := range uint64(300) {
		s := fixture.Singleton("db").Selecting(fixture.RandomSelector(rand.New(rand.NewPCG(seed, 4))))
		s.Namespace = fmt.Sprintf("ns%d", seed)
		objects = append(objects, &s.StatefulSingleton)
	}
	g := newGuard(t, nil, objects...)
	matches := 0
	for _, s := range objects {
		for _, have := range fixture.Universe() {
			for _, set := range []labels.Set{have, nil} {
				p := &fixture.Pod().With(func(p *corev1.Pod) { p.Namespace, p.Labels = s.Namespace, set }).Pod
				want := spec.SelectorOf(s).Matches(set)
				if want {
					matches++
				}
				answer := g.create(p)
				if answer != "" && !strings.HasSuffix(answer, noGate) {
					t.Fatal(answer)
				}
				if got := answer != ""; got != want {
					t.Fatalf("%s and a pod with %v: the guard returns %v, labels.Selector %v", metav1.FormatLabelSelector(s.Spec.Selector), set, got, want)
				}
			}
		}
	}
	if matches < 500 {
		t.Errorf("only %d pods matched", matches)
	}
}

// TestTheGuardKnowsAGateAsWeDo checks that HasGate in CEL is equivalent to HasGate in Go,
// with random pods that are injected or not, and then damaged.
func TestTheGuardKnowsAGateAsWeDo(t *testing.T) {
	program := fixture.Singleton("db").Containers("app")
	whole := fixture.Singleton("db")
	whole.Namespace = "elsewhere"
	g := newGuard(t, nil, &program.StatefulSingleton, &whole.StatefulSingleton)
	counts := map[bool]int{}
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := fixture.One(r, program, whole)
		p := fixture.RandomPod(r)
		p.Namespace = s.Namespace
		if !fixture.Maybe(r, 8) {
			as := &fixture.SingletonFixture{StatefulSingleton: *s.DeepCopy()}
			if children.Inject(p, &as.Mode(fixture.One(r, fixture.Modes...)).StatefulSingleton, fixture.Around()) != nil {
				continue
			}
		}
		damage(r, p)
		want := children.HasGate(p, &s.StatefulSingleton)
		counts[want]++
		answer := g.create(p)
		if answer != "" && !strings.HasSuffix(answer, noGate) {
			t.Fatalf("seed %d: %s", seed, answer)
		}
		if got := answer == ""; got != want {
			t.Fatalf("seed %d: the guard returns %v, hasGate %v: %v", seed, got, want, p.Spec)
		}
	}
	if counts[true] < 500 || counts[false] < 500 {
		t.Errorf("the pods are too similar: %v", counts)
	}
}

// damage removes one random thing from a pod, or nothing.
func damage(r *rand.Rand, p *corev1.Pod) {
	c := &p.Spec.Containers[r.IntN(len(p.Spec.Containers))]
	mount := func(m corev1.VolumeMount) { c.VolumeMounts = append(c.VolumeMounts, m) }
	switch r.IntN(16) {
	case 8:
		for i := range p.Spec.Volumes {
			if d := p.Spec.Volumes[i].DownwardAPI; d != nil {
				d.Items = append(d.Items, d.Items[r.IntN(2)])
			}
		}
	case 9:
		mount(corev1.VolumeMount{Name: fixture.One(r, v1.VolumeGate, v1.VolumeSignal, v1.VolumeScripts, "data"), MountPath: fixture.One(r, "/x", v1.PathGate, v1.PathSignal, v1.PathScripts), ReadOnly: fixture.Maybe(r, 2)})
	case 10:
		mount(corev1.VolumeMount{Name: v1.VolumeGate, MountPath: v1.PathGate, ReadOnly: true, SubPath: fixture.One(r, "", "x"), SubPathExpr: fixture.One(r, "", "y")})
	case 11:
		if len(p.Spec.InitContainers) > 0 {
			c = &p.Spec.InitContainers[r.IntN(len(p.Spec.InitContainers))]
			mount(corev1.VolumeMount{Name: fixture.One(r, v1.VolumeGate, v1.VolumeSignal, v1.VolumeScripts), MountPath: fixture.One(r, v1.PathGate, v1.PathSignal, v1.PathScripts)})
		}
	case 0:
		p.Spec.Volumes = nil
	case 1:
		p.Spec.InitContainers = nil
	case 2:
		c.Command = nil
	case 3:
		if len(c.Command) > 0 {
			c.Command = c.Command[:r.IntN(len(c.Command))]
		}
	case 4:
		c.Name = "renamed"
	case 5:
		for i := range p.Spec.InitContainers {
			p.Spec.InitContainers[i].Args = []string{"more"}
		}
	case 6:
		for i := range p.Spec.Volumes {
			if d := p.Spec.Volumes[i].DownwardAPI; d != nil {
				d.Items = d.Items[r.IntN(3):]
			}
		}
	case 7:
		for i := range p.Spec.Volumes {
			if d := p.Spec.Volumes[i].DownwardAPI; d != nil {
				d.Items[0].FieldRef, d.Items[0].ResourceFieldRef = nil, &corev1.ResourceFieldSelector{Resource: "limits.cpu"}
			}
		}
	}
}

// TestTheGuardCompilesInKubernetes130 checks that the oldest API server with such policies
// accepts every expression.
func TestTheGuardCompilesInKubernetes130(t *testing.T) {
	policy, _ := children.BuildGuard("operator-system", nil)
	policytest.Compile130(t, &policy.Spec, true)
}
