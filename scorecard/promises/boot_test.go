package promises_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	traces "github.com/stateful-operator/stateful-operator/test/traces/keep"
)

// root is the project's folder. The tests run in it.
const root = "../.."

// operator is the name of the operator's Deployment and service account.
var operator = client.ObjectKey{Namespace: "stateful-operator-system", Name: "stateful-operator-controller-manager"}

// work is the result of the first process's build for all processes.
var work workshop

type workshop struct {
	Folder   string     // for temporary files
	Operator string     // name of the operator's image
	Tars     []string   // archives of all images
	Images   kit.Images // images that promises run
}

// build builds all images. It boots the shared cluster at the same time, because almost all
// processes use it. Other clusters are booted by the process that uses them.
func build(ctx context.Context) (w workshop, err error) {
	for _, name := range names() {
		release, err := cluster.Hold(ctx, name, os.Stdout)
		if err != nil {
			return w, err
		}
		DeferCleanup(release)
	}
	if w.Folder, err = os.MkdirTemp("", "promises-"); err != nil {
		return w, err
	}
	DeferCleanup(os.RemoveAll, w.Folder)
	both, beside := errgroup.WithContext(ctx)
	both.Go(func() error { return w.writeImages(beside) })
	both.Go(func() error {
		if !chosen[kit.SharedSite] {
			return nil
		}
		_, err := up(beside, kit.SharedSite)
		return err
	})
	if err := both.Wait(); err != nil || !chosen[kit.SharedSite] {
		return w, err
	}
	return w, w.deploy(ctx, kit.SharedSite)
}

// nameOf returns the name of a site's local cluster. With -in-turn, all sites of kit.Alone
// share one cluster.
func nameOf(site kit.Site) string {
	name := cmp.Or(*keep, "promises")
	if site == kit.SharedSite {
		return name
	}
	if *inTurn {
		site = kit.Alone[0]
	}
	return name + "-" + string(site)
}

// names returns the names of all local clusters of this run.
func names() []string {
	all := map[string]bool{}
	for site := range chosen {
		all[nameOf(site)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func up(ctx context.Context, site kit.Site) (*cluster.Cluster, error) {
	return cluster.Up(ctx, cluster.Options{Name: nameOf(site), Nodes: 4, Version: *version, Log: GinkgoWriter})
}

// deploy loads all images into the cluster of a site and installs the operator.
func (w workshop) deploy(ctx context.Context, site kit.Site) error {
	local, err := cluster.Open(nameOf(site))
	if err != nil {
		return err
	}
	for _, tar := range w.Tars {
		if err := local.LoadImage(ctx, tar); err != nil {
			return err
		}
	}
	if out, err := local.Shell(ctx, "make --no-print-directory deploy IMAGE="+w.Operator).CombinedOutput(); err != nil {
		return fmt.Errorf("make deploy: %w\n%s", err, out)
	}
	return nil
}

// powerOff powers off the nodes of a site, because running nodes cost as much CPU time as a
// promise. The audit log of its API server is read when all promises have ended.
func powerOff(site kit.Site) {
	c := connected[nameOf(site)]
	if c == nil || *keep != "" {
		return
	}
	local, isLocal := c.Nodes.(*cluster.Cluster)
	if !isLocal {
		return
	}
	for _, node := range local.Nodes() {
		Expect(local.StopNode(node)).To(Succeed())
	}
}

// takeDown saves the traces of all local clusters, reads the audit logs of their API servers, and deletes them.
func takeDown(ctx context.Context) {
	var logs []string
	var booted []*cluster.Cluster
	for _, name := range names() {
		if local, err := cluster.Open(name); err == nil {
			logs, booted = append(logs, local.AuditLog()), append(booted, local)
		}
	}
	Expect(readRights(logs)).To(Succeed())
	var unsaved error
	for _, local := range booted {
		unsaved = errors.Join(unsaved, traces.Save(local.Dir(), filepath.Join("build", "traces", local.Name())))
		if *keep == "" {
			Expect(cluster.Down(ctx, local.Name(), GinkgoWriter)).To(Succeed())
		}
	}
	Expect(unsaved).NotTo(HaveOccurred())
}

// connected are the clusters that this process uses, by name.
var connected = map[string]*kit.Cluster{}

// clusterOf returns the cluster of a site, with the operator installed.
func clusterOf(ctx context.Context, site kit.Site) *kit.Cluster {
	GinkgoHelper()
	name := nameOf(site)
	if c := connected[name]; c != nil {
		return c
	}
	var local *cluster.Cluster
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		var err error
		local, err = up(ctx, site)
		Expect(err).NotTo(HaveOccurred())
		if site != kit.SharedSite {
			Expect(work.deploy(ctx, site)).To(Succeed())
		}
		kubeconfig = local.Kubeconfig()
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	c, err := kit.Connect(config)
	Expect(err).NotTo(HaveOccurred())
	c.Operator, c.Images = operator, work.Images
	c.Handovers, c.Faults, c.Fault, c.Freezes, c.Seed = *handovers, *faults, *fault, *freezes, *seed
	if local != nil {
		c.Nodes = local
		go func() { _ = traces.Logs(context.Background(), local.Dir(), time.Second) }() // Save returns its error, too
		// Nodes replace a few folders of this machine by their own, but not the cluster's folder.
		c.Shared = filepath.Join(local.Dir(), "witness")
		c.Program = filepath.Join(work.Folder, "stateful-operator")
	} else {
		c.Image, c.OtherImage = os.Getenv("PROMISES_IMAGE"), os.Getenv("PROMISES_OTHER_IMAGE")
		if c.Image == "" || c.OtherImage == "" {
			Fail("with KUBECONFIG set, PROMISES_IMAGE and PROMISES_OTHER_IMAGE must name two images with a /bin/sh and the first one an httpd, for example busybox:1.36 and busybox:1.37")
		}
	}
	Expect(operatorReady(ctx, c)).To(Succeed())
	connected[name] = c
	return c
}

// operatorReady waits until every Deployment of the operator is available.
func operatorReady(ctx context.Context, c *kit.Cluster) error {
	var why string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		var parts appsv1.DeploymentList
		if err := c.Client.List(ctx, &parts, client.InNamespace(c.Operator.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "stateful-operator"}); err != nil {
			why = err.Error()
			return false, ctx.Err()
		}
		why = fmt.Sprintf("it has %d Deployments", len(parts.Items))
		for i := range parts.Items {
			d := &parts.Items[i]
			s, want := d.Status, *d.Spec.Replicas
			if s.ObservedGeneration != d.Generation || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want {
				why = fmt.Sprintf("%s: %+v", d.Name, s)
				return false, nil
			}
		}
		return len(parts.Items) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("the operator is not available: %s: %w", why, err)
	}
	return nil
}

// show prints diagnostics after a promise has failed.
func show(ctx context.Context, c *kit.Cluster) {
	local, ok := c.Nodes.(*cluster.Cluster)
	if !ok {
		AddReportEntry("pods and warnings", scene(ctx, c), ReportEntryVisibilityFailureOrVerbose)
		for _, one := range operators(ctx, c) {
			AddReportEntry(suggestion, one, ReportEntryVisibilityFailureOrVerbose)
		}
		return
	}
	for _, args := range [][]string{
		{"get", "statefulclusters,replicatedstatefulsets,extendedstatefulsets,statefulsingletons,deployments,statefulsets,jobs,pods,pvc", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "-n", c.Operator.Namespace, "-l", "control-plane in (controller-manager, webhook, installer)", "--tail=30", "--prefix"},
	} {
		kubectl := exec.CommandContext(ctx, filepath.Join(local.Programs(), "kubectl"), append([]string{"--kubeconfig", local.Kubeconfig(), "-n", c.Namespace}, args...)...)
		out, _ := kubectl.CombinedOutput()
		AddReportEntry("kubectl "+strings.Join(args, " "), string(out), ReportEntryVisibilityFailureOrVerbose)
	}
}
