// Command redis demonstrates the Redis sample of ReplicatedStatefulSet in the local cluster (or that of
// KUBECONFIG). A client writes through the Service of the primary during kills, deletions and
// switchovers of primaries, and reports lost entries.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/run/place"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	"github.com/stateful-operator/stateful-operator/test/run/redis/server"
)

const (
	sampleFile = "config/samples/replicatedstatefulset/redis.yaml"
	serverTar  = "build/run/redis.tar"
	name       = "redis"
	writer     = "redis-client"
)

var key = types.NamespacedName{Namespace: place.Namespace, Name: name}

func main() {
	log.SetLogger(logr.Discard()) // the command prints its own output
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

// store is the sample in its cluster.
type store struct{ place.Place }

func run(ctx context.Context) error {
	say("Finding a cluster")
	where, err := place.Find(ctx)
	if err != nil {
		return err
	}
	s := store{where}
	say("Deploying the operator")
	if err := s.Operator(ctx); err != nil {
		return err
	}
	say("Applying the sample " + sampleFile)
	if err := s.apply(ctx); err != nil {
		return err
	}
	set, err := s.Set(ctx, key, func(*v1alpha1.ReplicatedStatefulSet) string { return "" })
	if err != nil {
		return err
	}
	say("A client starts to write")
	if err := s.startClient(ctx); err != nil {
		return err
	}
	primary := set.Status.Members.Primary[0]
	for _, fault := range faults {
		time.Sleep(place.Calm)
		say(fmt.Sprintf(fault.title, primary))
		next := set.Status.Members.Secondary[0]
		if _, err := s.Run(ctx, fault.args(primary, next)...); err != nil {
			return err
		}
		if primary, err = s.AnotherPrimary(ctx, key, primary); err != nil {
			return err
		}
		if err := s.Client.Get(ctx, key, set); err != nil {
			return err
		}
	}
	say("The client's output")
	return s.endClient(ctx)
}

func say(step string) { fmt.Printf("\n==> %s\n", step) }

// fault is a fault or an operation that ends a primary.
type fault struct {
	title string
	args  func(primary, secondary string) []string
}

var faults = []fault{
	{"The server of %s is killed", func(primary, _ string) []string {
		return []string{"exec", primary, "--", "sh", "-c", "kill -9 $(cat /tmp/redis.pid)"}
	}},
	{"The pod of %s is deleted", func(primary, _ string) []string {
		return []string{"delete", "pod", primary, "--wait=false"}
	}},
	{"The pod of %s is killed", func(primary, _ string) []string {
		return []string{"delete", "pod", primary, "--force", "--wait=false"}
	}},
	{"The role of %s is moved to another member", func(_, secondary string) []string {
		return []string{"annotate", "rss", name, v1alpha1.AnnotationSwitchoverTo + "=" + secondary}
	}},
}

// apply applies the sample, in the local cluster with an image that is built from the distribution's
// packages.
func (s store) apply(ctx context.Context) error {
	change := func(*unstructured.Unstructured) error { return nil }
	if s.Local != nil {
		fmt.Println("building an image of Redis from the distribution's packages …")
		image, err := server.Image.Write(ctx, serverTar)
		if err != nil {
			return err
		}
		if image, err = s.Load(ctx, image, serverTar); err != nil {
			return err
		}
		change = func(sample *unstructured.Unstructured) error { return place.MemberImage(sample, image) }
	}
	return s.Apply(ctx, sampleFile, change)
}

// startClient starts the client in a pod, because only pods can resolve names of Services.
func (s store) startClient(ctx context.Context) error {
	image, err := s.Program(ctx, program.Program{
		Package: "./test/run/redis/client", Ref: "localhost/redis-client", User: "65532:65532", Tar: "build/run/redis-client.tar"})
	if err != nil {
		return err
	}
	if _, err := s.Run(ctx, "delete", "pod", writer, "--ignore-not-found"); err != nil {
		return err
	}
	if _, err := s.Run(ctx, "run", writer, "--image="+image, "--restart=Never", "--", "run", name+"-primary:6379"); err != nil {
		return err
	}
	_, err = s.Run(ctx, "wait", "pod", writer, "--for=condition=Ready", "--timeout=2m")
	return err
}

// endClient stops the client, and prints its report.
func (s store) endClient(ctx context.Context) error {
	if _, err := s.Run(ctx, "exec", writer, "--", "/client", "end"); err != nil {
		return err
	}
	_, failed := s.Run(ctx, "wait", "pod", writer, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=3m")
	says, err := s.Run(ctx, "logs", writer)
	if err != nil {
		return err
	}
	fmt.Println(says)
	return failed
}
