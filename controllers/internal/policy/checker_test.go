package policy

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// closed returns a Builder as builderOf does, of a policy that fails closed. It has parameters of a kind, if any.
func closed(prefix string, params *admissionv1.ParamKind) Builder {
	build := builderOf(prefix)
	return func(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
		made, binding := build(namespace, watched)
		made.Spec.ParamKind, made.Spec.FailurePolicy = params, ptr.To(admissionv1.Fail)
		return made, binding
	}
}

// newChecker returns a Checker of two policies, and its client. The API server has both, as change has changed them.
func newChecker(t *testing.T, change func(policies map[string]*admissionv1.ValidatingAdmissionPolicy, bindings map[string]*admissionv1.ValidatingAdmissionPolicyBinding), refusal error) (*Checker, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builders := []Builder{closed("one-", &admissionv1.ParamKind{APIVersion: "example.com/v1", Kind: "DB"}), closed("two-", nil)}
	policies, bindings := map[string]*admissionv1.ValidatingAdmissionPolicy{}, map[string]*admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, build := range builders {
		made, binding := build("home", []string{"shop"})
		policies[made.Name], bindings[made.Name] = made, binding
	}
	change(policies, bindings)
	var existing []client.Object
	for _, p := range policies {
		existing = append(existing, p)
	}
	for _, b := range bindings {
		existing = append(existing, b)
	}
	refuse := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
		if refusal != nil {
			return refusal
		}
		return c.Get(ctx, key, into, options...)
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).WithInterceptorFuncs(refuse).Build()
	return &Checker{Live: c, Subject: "The policies", Builders: builders, Namespace: "home", Watched: []string{"shop"},
		Interval: time.Minute, Retry: time.Second, NotInstalled: "NotInstalled", NotSupported: "NotSupported",
		Excluded: func(namespace string) string { return namespace + " is excluded" }, Turned: make(chan event.GenericEvent, 1)}, c
}

func TestCheckerFindsTheProblem(t *testing.T) {
	type policies = map[string]*admissionv1.ValidatingAdmissionPolicy
	type bindings = map[string]*admissionv1.ValidatingAdmissionPolicyBinding
	const command = "kubectl logs -n home -l control-plane=installer"
	kind := schema.GroupResource{Group: admissionv1.GroupName, Resource: "validatingadmissionpolicies"}
	forbidden := apierrors.NewForbidden(kind, "one-home", nil)
	unknown := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: admissionv1.GroupName, Kind: "ValidatingAdmissionPolicy"}}
	for _, row := range []struct {
		name    string
		change  func(policies, bindings)
		refusal error
		reason  string
		message []string // parts of it
	}{
		{"all exist", func(policies, bindings) {}, nil, "", nil},
		{"a policy is missing", func(p policies, _ bindings) { delete(p, "one-home") }, nil, "NotInstalled", []string{"does not have policy one-home;", command}},
		{"another policy is missing", func(p policies, _ bindings) { delete(p, "two-home") }, nil, "NotInstalled", []string{"does not have policy two-home;", command}},
		{"a binding is missing", func(_ policies, b bindings) { delete(b, "two-home") }, nil, "NotInstalled", []string{"does not have policy two-home;", command}},
		{"a policy differs", func(p policies, _ bindings) {
			p["two-home"].Spec.Validations = []admissionv1.Validation{{Expression: "true"}}
		}, nil,
			"NotInstalled", []string{"policy two-home of the API server differs", command}},
		{"a binding applies elsewhere", func(_ policies, b bindings) { b["one-home"].Spec.MatchResources = nil }, nil, "NotInstalled", []string{"policy one-home of the API server differs"}},
		{"a binding only warns", func(_ policies, b bindings) {
			b["one-home"].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		}, nil, "NotInstalled", []string{"policy one-home of the API server differs"}},
		{"a new policy with parameters fails open", func(p policies, _ bindings) { p["one-home"].Spec.FailurePolicy = ptr.To(admissionv1.Ignore) }, nil, "", nil},
		{"a policy without parameters fails open", func(p policies, _ bindings) { p["two-home"].Spec.FailurePolicy = ptr.To(admissionv1.Ignore) }, nil,
			"NotInstalled", []string{"policy two-home of the API server differs"}},
		{"the operator may not read them", func(policies, bindings) {}, forbidden, "NotInstalled", []string{"the operator cannot read its policy: ", `"one-home" is forbidden`}},
		{"the API server supports none", func(policies, bindings) {}, unknown, "NotSupported", []string{"requires Kubernetes 1.30"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			checker, _ := newChecker(t, row.change, row.refusal)
			problem := checker.look(t.Context())
			if problem.Reason != row.reason || (problem.Message == "") != (row.reason == "") {
				t.Errorf("the problem is %+v, want reason %q", problem, row.reason)
			}
			for _, part := range row.message {
				if !strings.Contains(problem.Message, part) {
					t.Errorf("the message %q lacks %q", problem.Message, part)
				}
			}
		})
	}
}

func TestPoliciesDoNotApplyInSomeNamespaces(t *testing.T) {
	c := &Checker{Namespace: "home", NotInstalled: "NotInstalled", Excluded: func(namespace string) string { return namespace + " is excluded" }}
	gone := engine.Notice{Reason: "NotInstalled", Message: "gone"}
	for _, row := range []struct {
		namespace     string
		before, after string
	}{
		{"shop", "", "gone"},
		{"home", "home is excluded", "home is excluded"},
		{metav1.NamespaceSystem, "kube-system is excluded", "kube-system is excluded"},
	} {
		c.Note(engine.Notice{})
		if got := c.MissingIn(row.namespace); got.Message != row.before || (got.Reason == "") != (row.before == "") {
			t.Errorf("%s: the problem is %+v, want %q", row.namespace, got, row.before)
		}
		c.Note(gone)
		if got := c.MissingIn(row.namespace); got.Message != row.after || got.Reason != "NotInstalled" {
			t.Errorf("%s: the problem is %+v, want %q", row.namespace, got, row.after)
		}
	}
}

func TestACheckerReportsChanges(t *testing.T) {
	checker, c := newChecker(t, func(map[string]*admissionv1.ValidatingAdmissionPolicy, map[string]*admissionv1.ValidatingAdmissionPolicyBinding) {
	}, nil)
	if got := checker.Missing(); got.Message != "" {
		t.Errorf("before the first check, the problem is %+v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		checker.Turned = make(chan event.GenericEvent, 1) // of this bubble
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- checker.Start(ctx) }()
		expect := func(sentence string, events int, missing bool) {
			t.Helper()
			synctest.Wait()
			if len(checker.Turned) != events || (checker.Missing().Message != "") != missing {
				t.Errorf("%s: %d events, want %d; the problem is %+v", sentence, len(checker.Turned), events, checker.Missing())
			}
			for len(checker.Turned) > 0 {
				<-checker.Turned
			}
		}
		expect("all exist", 0, false)
		two, _ := closed("two-", nil)("home", nil)
		if err := c.Delete(ctx, two.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		<-time.After(checker.Interval)
		expect("a policy was deleted", 1, true)
		<-time.After(checker.Retry)
		expect("it is still missing", 0, true)
		if err := c.Create(ctx, two.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		<-time.After(checker.Retry)
		expect("it was restored", 1, false)
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// newCheckerIfUsed returns a Checker of correct policies that checks them while they are used. Each read fails with the
// error of a function.
func newCheckerIfUsed(t *testing.T, read func() error) *Checker {
	t.Helper()
	checker, c := newChecker(t, func(map[string]*admissionv1.ValidatingAdmissionPolicy, map[string]*admissionv1.ValidatingAdmissionPolicyBinding) {
	}, nil)
	checker.IfUsed = true
	checker.Live = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
		if err := read(); err != nil {
			return err
		}
		return c.Get(ctx, key, into, options...)
	}})
	return checker
}

// TestPoliciesAreCheckedWhileTheyAreUsed counts the checks of a Checker that is limited to them.
func TestPoliciesAreCheckedWhileTheyAreUsed(t *testing.T) {
	var none *Checker
	none.Use(types.NamespacedName{}, true)
	reads := 0
	checker := newCheckerIfUsed(t, func() error {
		reads++
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- checker.Start(ctx) }()
		first, second := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
		for _, step := range []struct {
			name   string
			object types.NamespacedName
			uses   bool
			want   int // reads of the first check, and of the later ones
			later  int
		}{
			{"no object uses them", first, false, 4, 0}, // First is called only for objects that use them
			{"one object", first, true, 4, 4},
			{"two objects", second, true, 0, 4},
			{"one object again", first, false, 0, 4},
			{"none again", second, false, 0, 0},
			{"and one: the former result is not used", second, true, 4, 4},
		} {
			reads = 0
			checker.Use(step.object, step.uses)
			checker.First(ctx)
			if reads != step.want {
				t.Errorf("%s: %d reads at first, want %d", step.name, reads, step.want)
			}
			reads = 0
			time.Sleep(checker.Interval)
			synctest.Wait()
			if reads != step.later {
				t.Errorf("%s: %d reads in an interval, want %d", step.name, reads, step.later)
			}
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAProblemThatFirstFindsIsCheckedSoon lets the first check after an idle time fail.
func TestAProblemThatFirstFindsIsCheckedSoon(t *testing.T) {
	fails := false
	checker := newCheckerIfUsed(t, func() error {
		if fails {
			return context.DeadlineExceeded
		}
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- checker.Start(ctx) }()
		synctest.Wait() // it is idle
		fails = true
		checker.Use(types.NamespacedName{Name: "a"}, true)
		checker.First(ctx)
		if checker.Missing().Message == "" {
			t.Error("a check that fails finds no problem")
		}
		fails = false
		time.Sleep(checker.Retry)
		synctest.Wait()
		if problem := checker.Missing(); problem.Message != "" {
			t.Errorf("the problem remains: %v", problem)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
