package policy

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// builderOf returns a Builder of a policy with that prefix of its name.
func builderOf(prefix string) Builder {
	return func(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
		made := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: prefix + namespace}}
		binding := Deny(made)
		Limit(binding, namespace, watched)
		return made, binding
	}
}

// newMaintainer returns a Maintainer of two policies, and its client, which refuses to create one of this name.
func newMaintainer(t *testing.T, refused string, existing ...client.Object) (*Maintainer, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	refuse := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if object.GetName() == refused {
			return context.DeadlineExceeded
		}
		return c.Create(ctx, object, options...)
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).WithInterceptorFuncs(refuse).Build()
	return &Maintainer{Keeper: Keeper{Live: c, Runner: &action.Runner{Client: c, Live: c}}, Subject: "The policies", CRD: "dbs.example.com",
		Builders: []Builder{builderOf("one-"), builderOf("two-")}, Namespace: "home", Watched: []string{"shop"}, Interval: time.Minute, Retry: time.Second}, c
}

var definition = &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "dbs.example.com", UID: "uid"}}

// names returns the names of the policies, checked to be those of the bindings.
func names(t *testing.T, c client.Client) (all []string) {
	t.Helper()
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	for _, list := range []client.ObjectList{&policies, &bindings} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if len(policies.Items) != len(bindings.Items) {
		t.Errorf("%d policies and %d bindings", len(policies.Items), len(bindings.Items))
	}
	for i := range policies.Items {
		all = append(all, policies.Items[i].Name)
		if owners := policies.Items[i].OwnerReferences; len(owners) != 1 || owners[0].UID != definition.UID {
			t.Errorf("the owners are %v", owners)
		}
	}
	for i := range bindings.Items {
		if in := bindings.Items[i].Spec.MatchResources; in == nil || len(in.NamespaceSelector.MatchExpressions) != 2 {
			t.Errorf("the binding is limited to %v", in)
		}
	}
	return all
}

func TestMaintainer(t *testing.T) {
	for _, row := range []struct {
		name     string
		refused  string
		existing []client.Object
		want     []string
		problem  string // part of it
	}{
		{"all are created", "", []client.Object{definition}, []string{"one-home", "two-home"}, ""},
		{"one is refused", "one-home", []client.Object{definition}, []string{"two-home"}, "one-home: "},
		{"the definition does not exist", "", nil, nil, "not found"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, c := newMaintainer(t, row.refused, row.existing...)
			err := m.keepAll(t.Context())
			if problem := Problem(err); !strings.Contains(problem, row.problem) || (problem == "") != (row.problem == "") {
				t.Errorf("the problem is %q, want %q", problem, row.problem)
			}
			if got := names(t, c); !slices.Equal(got, row.want) {
				t.Errorf("the policies are %q, want %q", got, row.want)
			}
		})
	}
}

func TestAMaintainerRestoresPolicies(t *testing.T) {
	m, c := newMaintainer(t, "", definition)
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Start(ctx) }()
		synctest.Wait()
		if err := c.DeleteAllOf(ctx, &admissionv1.ValidatingAdmissionPolicy{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(m.Interval + time.Second)
		if got := names(t, c); len(got) != 2 {
			t.Errorf("the policies are %q", got)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
