package observe_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestLargeRevisionsAreNotRead(t *testing.T) {
	read := func(spec string) *corev1.PodTemplateSpec {
		return observe.TemplateIn(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":` + spec + `}}}`)}})
	}
	many := func(n int) string { return `{"containers":[` + strings.Repeat("{},", n-1) + "{}]}" }
	if read(many(1)) == nil || read(many(spec.MaxContainers)) == nil {
		t.Error("a template within the limits is not read")
	}
	for name, spec := range map[string]string{
		"too many containers": many(spec.MaxContainers + 1),
		"a huge quantity":     `{"containers":[{"resources":{"limits":{"cpu":"1e99999999"}}}]}`,
		"a long text":         `{"hostname":"` + strings.Repeat("x", 2*bounds.Bytes) + `"}`,
		"invalid JSON":        `{`,
	} {
		if read(spec) != nil {
			t.Errorf("a template beyond the limits is read: %s", name)
		}
	}
}
