package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

var update = flag.Bool("update", false, "update the golden files in testdata")

// theTime is the time at which all recordings are evaluated.
var theTime = time.Date(2026, time.November, 25, 12, 0, 0, 0, time.UTC)

// terminal is a user's terminal, with a cluster of recorded objects.
type terminal struct {
	t   *testing.T
	c   client.WithWatch
	now time.Time
	out *bytes.Buffer
	err *bytes.Buffer
	// before is called before each check of a command that waits.
	before func(look int)
	logs   map[string]string
}

func at(t *testing.T, files ...string) *terminal { return atWith(t, interceptor.Funcs{}, files...) }

func atWith(t *testing.T, funcs interceptor.Funcs, files ...string) *terminal {
	t.Helper()
	scheme, err := kinds.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Event{}, snapshot.InvolvedUID, func(o client.Object) []string {
			return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
		}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
	for _, kind := range kinds.All {
		builder = builder.WithStatusSubresource(kind.New())
	}
	for _, file := range append(files, "nodes.yaml") {
		for _, object := range read(t, file) {
			decoded, err := scheme.New(object.GetObjectKind().GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			builder = builder.WithObjects(as(t, object, decoded.(client.Object)))
		}
	}
	return &terminal{t: t, c: builder.Build(), now: theTime, out: &bytes.Buffer{}, err: &bytes.Buffer{}}
}

// run runs a command, and returns its exit code and its output.
func (x *terminal) run(args ...string) (code int, out, stderr string) {
	x.out.Reset()
	x.err.Reset()
	looks := 0
	p := &Plugin{
		Streams:  genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: x.out, ErrOut: x.err},
		Version:  "0.1.0",
		Interval: time.Millisecond,
		Now:      func() time.Time { return x.now },
		Connect: func() (site, error) {
			return site{Namespace: "default", Client: &watched{WithWatch: x.c, before: func() {
				looks++
				if x.before != nil {
					x.before(looks)
				}
			}}, Logs: x.log}, nil
		},
	}
	code = p.Execute(context.Background(), p.Root(), args)
	return code, x.out.String(), x.err.String()
}

func (x *terminal) log(_ context.Context, namespace, pod, container string, _ bool) ([]byte, error) {
	if text, ok := x.logs[namespace+"/"+pod+"/"+container]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("no log")
}

// watched calls a function at each read of an object of the kinds.
type watched struct {
	client.WithWatch
	before func()
}

func (w *watched) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	for _, kind := range kinds.All {
		if _, err := kinds.Parse(kind.Short); err == nil && sameType(object, kind.New()) {
			w.before()
		}
	}
	return w.WithWatch.Get(ctx, key, object, opts...)
}

// golden compares with a file in testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	name := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; create it with -update and review it", err)
	}
	if got != string(want) {
		t.Fatalf("%s differs (update it with -update):\nwant:\n%s\ngot:\n%s", file, want, got)
	}
}
