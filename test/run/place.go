package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// place is the cluster everything happens in.
type place struct {
	kubeconfig string
	kubectl    string
	client     client.Client
	// local is nil in a cluster that was there before us.
	local *cluster.Cluster
}

func findPlace(ctx context.Context) (place, error) {
	where := place{kubeconfig: os.Getenv("KUBECONFIG"), kubectl: "kubectl"}
	if where.kubeconfig == "" {
		local, err := cluster.Up(ctx, cluster.Options{Log: os.Stdout})
		if err != nil {
			return place{}, err
		}
		where.local, where.kubeconfig = local, local.Kubeconfig()
		where.kubectl = filepath.Join(local.Programs(), "kubectl")
	} else {
		fmt.Println("using the cluster of KUBECONFIG", where.kubeconfig)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(where.kubeconfig)}, nil).ClientConfig()
	if err != nil {
		return place{}, fmt.Errorf("reading %s: %w", where.kubeconfig, err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return place{}, err
	}
	where.client, err = client.New(config, client.Options{Scheme: scheme})
	return where, err
}

// images builds what runs in the cluster and brings it there.
func (p place) images(ctx context.Context) (operator, coder string, err error) {
	operator, err = p.image(ctx, program.Operator("build/run/stateful-operator.tar"))
	if err != nil {
		return "", "", err
	}
	coder, err = p.image(ctx, program.Program{
		// Root, because the sample asks for no group on its volumes.
		Package: "./test/run/coder", Ref: "localhost/coder", User: "0:0", Tar: "build/run/coder.tar",
	})
	return operator, coder, err
}

func (p place) image(ctx context.Context, wanted program.Program) (string, error) {
	ref, err := wanted.Write(ctx)
	if err != nil {
		return "", err
	}
	if p.local == nil {
		fmt.Printf("%s is in %s; your cluster's nodes need it: for kind, kind load image-archive %s\n", ref, wanted.Tar, wanted.Tar)
		return ref, nil
	}
	// The cluster's folder goes with the cluster, and so does this note.
	note := filepath.Join(p.local.Dir(), "loaded-"+filepath.Base(wanted.Tar))
	loaded, err := os.ReadFile(note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if strings.TrimSpace(string(loaded)) == ref {
		fmt.Printf("%s is in the cluster already\n", ref)
		return ref, nil
	}
	fmt.Printf("loading %s into the nodes …\n", ref)
	if err := p.local.LoadImage(ctx, wanted.Tar); err != nil {
		return "", err
	}
	return ref, os.WriteFile(note, []byte(ref+"\n"), 0o644)
}
