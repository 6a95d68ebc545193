package controllers

import (
	"context"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onePod is an API server with one pod, operators/operator-0.
type onePod struct {
	client.Reader
	containers []corev1.Container
}

func (p onePod) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if key.String() != "operators/operator-0" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	}
	object.(*corev1.Pod).Spec.Containers = p.containers
	return nil
}

// refusing is an API server that fails the first reads.
type refusing struct {
	onePod
	fails, reads *int
}

func (r refusing) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if *r.reads++; *r.reads <= *r.fails {
		return apierrors.NewServiceUnavailable("starting")
	}
	return r.onePod.Get(ctx, key, object, options...)
}

func TestTheImageOfTheAgentIsReadUntilItIsKnown(t *testing.T) {
	options, err := ParseOptions([]string{"--namespace=operators"}, func(name string) string {
		return map[string]string{"POD_NAME": "operator-0"}[name]
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	reads, fails := 0, 1
	image := options.agentImage(refusing{onePod{containers: []corev1.Container{{Name: "manager", Image: "registry/operator:1"}}}, &fails, &reads})
	if got, err := image(t.Context()); err == nil {
		t.Fatalf("the image is %q, want an error", got)
	}
	for range 3 {
		if got, err := image(t.Context()); err != nil || got != "registry/operator:1" {
			t.Errorf("the image is %q: %v", got, err)
		}
	}
	if reads != 2 {
		t.Errorf("the pod was read %d times, want 2", reads)
	}
}

func TestTheGateComesFromTheOperatorsImage(t *testing.T) {
	manager, mesh := corev1.Container{Name: "manager", Image: "registry/operator:1"}, corev1.Container{Name: "mesh", Image: "registry/mesh:1"}
	other := corev1.Container{Name: "operator", Image: "registry/operator:2"}
	for _, row := range []struct {
		sentence   string
		pod        string
		related    string
		args       []string
		containers []corev1.Container
		image      string
		fault      string
	}{
		{"a container named manager", "operator-0", "", nil, []corev1.Container{manager}, "registry/operator:1", ""},
		{"a container named manager and another container", "operator-0", "", nil, []corev1.Container{mesh, manager}, "registry/operator:1", ""},
		{"a single container with another name", "operator-0", "", nil, []corev1.Container{other}, "registry/operator:2", ""},
		{"two containers, none named manager", "operator-0", "", nil, []corev1.Container{mesh, other}, "",
			"pod operators/operator-0: it has 2 containers, and none is named manager; set --gate-image"},
		{"a missing pod", "laptop", "", nil, nil, "", "operators/laptop, which $POD_NAME or the hostname names: pods \"laptop\" not found; set --gate-image if"},
		{"the variable of OLM, without reading the pod", "laptop", "mirror/gate:1", nil, nil, "mirror/gate:1", ""},
		{"the flag, which takes precedence over the variable", "laptop", "mirror/gate:1", []string{"--gate-image=registry/gate:1"}, nil, "registry/gate:1", ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			options, err := ParseOptions(append(row.args, "--namespace=operators"), func(name string) string {
				return map[string]string{"POD_NAME": row.pod, "RELATED_IMAGE_GATE": row.related}[name]
			}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			image, err := options.gateImage(t.Context(), onePod{containers: row.containers})
			if image != row.image || (err == nil) != (row.fault == "") || err != nil && !strings.Contains(err.Error(), row.fault) {
				t.Errorf("got %q and %v, want %q and %q", image, err, row.image, row.fault)
			}
		})
	}
}
