package observe_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
)

func TestWhatIsFollowed(t *testing.T) {
	set := fixture.Follows(fixture.SetOf(3, 1))
	set.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	set.Spec.TLS = &v1alpha1.TLSPolicy{Static: &v1alpha1.StaticTLS{OperatorSecret: "clients", Member: &v1alpha1.MemberTLS{PeerSecret: "peer", ServerSecret: "server"}}}
	set.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec": {"volumes": [{"name": "v", "configMap": {"name": "conf"}}], "imagePullSecrets": [{"name": "pull2"}]}}`)}
	if got, want := fmt.Sprint(observe.UsesIndex(set)), "[ConfigMap conf Secret creds Secret extra Secret peer Secret server]"; got != want {
		t.Errorf("followed are %s, want %s", got, want)
	}
	set.Spec.UpdateOnEnvChange = false
	if got := observe.UsesIndex(set); got != nil {
		t.Errorf("followed are %v, want none", got)
	}
	application := fixture.PostgreSQL()
	application.Spec.UpdateOnEnvChange = true
	if got, want := fmt.Sprint(observe.UsesIndex(application)), "[Secret passwords]"; got != want {
		t.Errorf("the index of an application is %s, want %s", got, want)
	}
}
