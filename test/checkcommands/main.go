// Command checkcommands runs `kubectl stateful check-commands` on the cluster of KUBECONFIG, or boots the local
// cluster. It builds the images of the samples for the local cluster, whose nodes pull no images. Arguments
// after the flags are those of kubectl stateful check-commands.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/command"
	"github.com/stateful-operator/stateful-operator/test/manifest"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

// exitError is the exit code for errors. It is 1 if a rule is violated.
const exitError = 2

func main() {
	file := flag.String("file", "", "`manifest` with a ReplicatedStatefulSet and the objects that its pods need")
	flag.Parse()
	if *file == "" {
		fmt.Fprintln(os.Stderr, "checkcommands: --file is required; with make: make check-commands FILE=my.yaml")
		os.Exit(exitError)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := check(ctx, *file, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "checkcommands:", err)
	}
	os.Exit(code)
}

// check runs the plugin for a manifest and returns its exit code.
func check(ctx context.Context, file string, args []string) (code int, err error) {
	objects, err := manifest.ReadFile[*unstructured.Unstructured](file)
	if err != nil {
		return exitError, err
	}
	where, err := place.Find(ctx)
	if err != nil {
		return exitError, err
	}
	if err := bringImages(ctx, where, objects); err != nil {
		return exitError, err
	}
	changed, err := text(objects)
	if err != nil {
		return exitError, err
	}
	if err := os.Setenv("KUBECONFIG", where.Kubeconfig); err != nil {
		return exitError, err
	}
	streams := genericiooptions.IOStreams{In: changed, Out: os.Stdout, ErrOut: os.Stderr}
	return command.Run(ctx, streams, "", append([]string{"check-commands", "--filename=-"}, args...)), nil
}

// text returns objects as a manifest.
func text(objects []*unstructured.Unstructured) (io.Reader, error) {
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range objects {
		list.Items = append(list.Items, *object)
	}
	content, err := list.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return bytes.NewReader(content), nil
}
