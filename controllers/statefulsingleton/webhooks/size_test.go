package webhooks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	kubeadmissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// decodes counts the pods that are completely decoded.
type decodes struct {
	admission.Decoder
	count int
}

func (d *decodes) Decode(req admission.Request, into runtime.Object) error {
	d.count++
	return d.Decoder.Decode(req, into)
}

// crate returns a pod with that many containers, each with a different image.
func crate(containers, inits int) *fixture.PodFixture {
	p := fixture.Pod()
	p.Spec.Containers = nil
	for i := range containers {
		p.Spec.Containers = append(p.Spec.Containers, fixture.Container(fmt.Sprintf("c%d", i)).WithCommand("serve").Container)
	}
	for i := range inits {
		p.Inits(fixture.Container(fmt.Sprintf("i%d", i)))
	}
	return p
}

// TestAPodOfManyContainersIsRefusedAtOnce checks that a pod with too many containers is
// rejected before it is decoded. Previously the webhook compared all containers with each
// other.
func TestAPodOfManyContainersIsRefusedAtOnce(t *testing.T) {
	h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db").Mode(v1.GateInit))})
	count := &decodes{Decoder: h.Decoder}
	h.Decoder = count
	raw := `{"metadata":{"labels":{"app":"%s"}},"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat(`{"name":""},`, 16000), ",") + `]}}`
	answer := asked(h, fmt.Sprintf(raw, "db"))
	const want = "StatefulSingleton db cannot hold back this pod: spec.containers: Forbidden: 16000 containers, including the init containers, exceed the max of 200; split the pod, or give it labels that the StatefulSingleton does not select"
	if answer.Allowed || answer.Result.Message != want || count.count > 0 {
		t.Errorf("after %d decodes the response is\n  %v\nwant\n  %s", count.count, answer.Result, want)
	}
	if answer := asked(h, fmt.Sprintf(raw, "web")); !answer.Allowed || answer.Patch != nil || count.count > 0 {
		t.Errorf("a large pod that is not selected is decoded %d times, with response %+v", count.count, answer)
	}
}

func TestTheMostContainersOfAPod(t *testing.T) {
	for _, mode := range fixture.Modes {
		s := fixture.Singleton("db").Mode(mode)
		for _, r := range []struct {
			name string
			pod  *fixture.PodFixture
			want string
		}{
			{"200 containers", crate(200, 0), ""},
			{"200 containers with the init containers", crate(120, 80), ""},
			{"201 containers", crate(201, 0), "201 containers"},
			{"201 containers with the init containers", crate(120, 81), "201 containers"},
		} {
			errs := children.Inject(r.pod.DeepCopy(), &s.StatefulSingleton, fixture.Around())
			if text := fmt.Sprint(errs.ToAggregate()); r.want == "" && len(errs) > 0 || r.want != "" && !strings.Contains(text, r.want) {
				t.Errorf("%s: the error is %s, want %q", r.name, text, r.want)
			}
		}
		once := fixture.Injected(t, &crate(120, 80).Pod, s)
		if twice := fixture.Injected(t, once, s); len(twice.Spec.InitContainers) != len(once.Spec.InitContainers) {
			t.Errorf("%s: an injected pod was changed again", mode)
		}
		h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(s)})
		if answer := asked(h, asJSON(t, once)); !answer.Allowed {
			t.Errorf("%s: a pod that has the gate is refused: %s", mode, answer.Result.Message)
		}
	}
}

// TestEachImageIsBroughtOnce checks that a pod with the max number of images gets one
// container for each, with unused names.
func TestEachImageIsBroughtOnce(t *testing.T) {
	p := crate(100, 100)
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Image = p.Spec.Containers[i].Image
	}
	got := fixture.Injected(t, &p.Pod, fixture.Singleton("db").Mode(v1.GateInit))
	images, taken := map[string]int{}, map[string]int{}
	for i := range got.Spec.InitContainers {
		if c := &got.Spec.InitContainers[i]; children.IsImage(c) {
			images[c.Image]++
			taken[c.Name]++
		}
	}
	if len(images) != 100 || len(taken) != 100 {
		t.Errorf("%d images by %d names", len(images), len(taken))
	}
}

// TestTheWebhookEndsWithItsRequest checks that the webhook stops when its request has
// ended.
func TestTheWebhookEndsWithItsRequest(t *testing.T) {
	h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db"))})
	count := &decodes{Decoder: h.Decoder}
	h.Decoder = count
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	answer := h.Handle(ctx, admission.Request{AdmissionRequest: kubeadmissionv1.AdmissionRequest{
		Namespace: "ns", Object: runtime.RawExtension{Raw: []byte(asJSON(t, &fixture.Pod().Pod))}}})
	if answer.Allowed || count.count > 0 {
		t.Errorf("after the context was canceled, %d pods were decoded, with response %+v", count.count, answer)
	}
}

// reads counts the claims that are read.
type reads struct {
	fixture.Claims
	count int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r.count++
	return r.Claims.Get(ctx, key, obj, opts...)
}

func TestFewClaimsOfAPodAreRead(t *testing.T) {
	h := fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db"))})
	count := &reads{Claims: fixture.Claims{}}
	h.Claims = count
	p := fixture.Pod()
	for i := range 1000 {
		name := fmt.Sprintf("data%d", i)
		count.Claims[name] = corev1.ReadWriteMany
		p.Claim(name)
	}
	if got := h.OneNodeClaims(context.Background(), "ns", &p.Pod); count.count != webhooks.MaxClaims || got.Len() != 1000-webhooks.MaxClaims {
		t.Errorf("%d claims are read, and %d are treated as mountable by one node", count.count, got.Len())
	}
}

// TestARefusalHasAnEnd checks that the number of errors for a pod is limited.
func TestARefusalHasAnEnd(t *testing.T) {
	p := fixture.Pod(fixture.App())
	for i := range 5000 {
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "x", MountPath: fmt.Sprintf("/var/run/gate/%d", i)})
		p.Volume(v1.VolumeSignal, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	}
	answer := asked(fixture.NewHandler(t, fixture.Known{Items: fixture.All(fixture.Singleton("db").Mode(v1.GateBinary))}), asJSON(t, &p.Pod))
	if answer.Allowed || len(answer.Result.Message) > 10_000 {
		t.Errorf("the response has %d bytes", len(answer.Result.Message))
	}
}
