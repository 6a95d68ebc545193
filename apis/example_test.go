package apis_test

import (
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// Other operators register the kinds with the scheme of their manager or client.
func Example_scheme() {
	scheme := runtime.NewScheme()
	utilruntime.Must(engev1alpha1.AddToScheme(scheme))
	utilruntime.Must(clusterlabsv1alpha1.AddToScheme(scheme))
	utilruntime.Must(fissilev1alpha1.AddToScheme(scheme))
	utilruntime.Must(statefulsingletonv1.AddToScheme(scheme))

	fmt.Println(scheme.Recognizes(engev1alpha1.GroupVersion.WithKind("StatefulCluster")))
	fmt.Println(scheme.Recognizes(clusterlabsv1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet")))
	fmt.Println(scheme.Recognizes(fissilev1alpha1.GroupVersion.WithKind("ExtendedStatefulSet")))
	fmt.Println(scheme.Recognizes(statefulsingletonv1.GroupVersion.WithKind("StatefulSingleton")))
	// Output:
	// true
	// true
	// true
	// true
}

// This creates a database of three members. It specifies only the image and the commands in it. Set
// TypeMeta for server-side apply:
//
//	err := c.Patch(ctx, set, client.Apply, client.FieldOwner("your-operator"))
func Example_replicatedStatefulSet() {
	command := func(name string) clusterlabsv1alpha1.Command {
		return clusterlabsv1alpha1.Command{Command: []string{"/db-ctl", name}}
	}
	set := clusterlabsv1alpha1.ReplicatedStatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterlabsv1alpha1.GroupVersion.String(), Kind: "ReplicatedStatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec: clusterlabsv1alpha1.ReplicatedStatefulSetSpec{
			Replicas:  new(int32(3)),
			Primaries: new(int32(1)),
			Pod: clusterlabsv1alpha1.PodPolicy{
				Containers: []corev1.Container{{Name: "db", Image: "registry.example/db:1.0", Command: []string{"/idle"}}},
				Commands: map[string]clusterlabsv1alpha1.Command{
					clusterlabsv1alpha1.CommandSequence: command("sequence"),
					clusterlabsv1alpha1.CommandStatus:   command("status"),
					clusterlabsv1alpha1.CommandPrimary:  command("primary"),
					clusterlabsv1alpha1.CommandStop:     command("stop"),
				},
			},
		},
	}
	text, err := yaml.Marshal(set.Spec.Pod.Commands)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Print(string(text))
	// Output:
	// primary:
	//   command:
	//   - /db-ctl
	//   - primary
	// sequence:
	//   command:
	//   - /db-ctl
	//   - sequence
	// status:
	//   command:
	//   - /db-ctl
	//   - status
	// stop:
	//   command:
	//   - /db-ctl
	//   - stop
}

// This checks by conditions whether a set serves, like for any Kubernetes object. Conditions of
// another generation do not count.
func Example_conditions() {
	set := engev1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	set.Status.ObservedGeneration = 2
	set.Status.Conditions = []metav1.Condition{{Type: engev1alpha1.ConditionAvailable, Status: metav1.ConditionTrue}}

	serves := set.Status.ObservedGeneration == set.Generation &&
		meta.IsStatusConditionTrue(set.Status.Conditions, engev1alpha1.ConditionAvailable)
	fmt.Println(serves)
	// Output: true
}

// An ExtendedStatefulSet contains an ordinary StatefulSet template.
func Example_extendedStatefulSet() {
	labels := map[string]string{"app": "shop"}
	template := appsv1.StatefulSetSpec{
		Replicas:    new(int32(3)),
		ServiceName: "shop",
		Selector:    &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example/shop:2.0"}}},
		},
	}
	set := fissilev1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}
	set.Spec.Template.Spec = template
	fmt.Println(*set.Spec.Template.Spec.Replicas)
	// Output: 3
}

// A StatefulSingleton selects the pods of an unmodified Deployment.
func Example_statefulSingleton() {
	singleton := statefulsingletonv1.StatefulSingleton{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mailer"},
		Spec:       statefulsingletonv1.StatefulSingletonSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mailer"}}},
	}
	fmt.Println(metav1.FormatLabelSelector(singleton.Spec.Selector))
	// Output: app=mailer
}
