package policy

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// N14: a policy is deleted with the last of its CRDs, not with the first.
func TestN14Owners(t *testing.T) {
	definition := func(name string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	}
	goes := definition("goes")
	now := metav1.Now()
	goes.Finalizers, goes.DeletionTimestamp = []string{"f"}, &now
	for _, row := range []struct {
		name  string
		asked []string
		want  []types.UID
		fails bool
	}{
		{"all owners exist", []string{"a", "b"}, []types.UID{"uid-of-a", "uid-of-b"}, false},
		{"the first owner is missing", []string{"missing", "b"}, []types.UID{"uid-of-b"}, false},
		{"the first owner is being deleted", []string{"goes", "b"}, []types.UID{"uid-of-b"}, false},
		{"no owner exists", []string{"missing", "goes"}, nil, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := apiextensionsv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects([]client.Object{definition("a"), definition("b"), goes.DeepCopy()}...).Build()
			owners, err := Keeper{Live: live}.owners(t.Context(), row.asked)
			if (err != nil) != row.fails || len(owners) != len(row.want) {
				t.Fatalf("%v, %v", owners, err)
			}
			for i, o := range owners {
				if o.UID != row.want[i] || o.Kind != "CustomResourceDefinition" {
					t.Errorf("owner %d is %v", i, o)
				}
			}
		})
	}
}
