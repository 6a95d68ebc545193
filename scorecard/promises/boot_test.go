package promises_test

import (
	"cmp"
	"context"
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

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// root is the project's folder, in which the tests run.
const root = "../.."

// operator is the Deployment of the operator, and its service account.
var operator = client.ObjectKey{Namespace: "stateful-operator-system", Name: "stateful-operator-controller-manager"}

// work is what the first process has built for all of them.
var work workshop

type workshop struct {
	Folder   string          // of temporary files
	Operator string          // the name of its image
	Tars     []string        // of all images
	Images   promises.Images // that promises run
}

// build builds all images. The shared cluster boots meanwhile, as all processes but a
// few use it; others are booted by the process that uses them.
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
		if !chosen[promises.SharedSite] {
			return nil
		}
		_, err := up(beside, promises.SharedSite)
		return err
	})
	if err := both.Wait(); err != nil || !chosen[promises.SharedSite] {
		return w, err
	}
	return w, w.deploy(ctx, promises.SharedSite)
}

// nameOf is that of a site's local cluster. All that are alone may be on that of one of them.
func nameOf(site promises.Site) string {
	name := cmp.Or(*keep, "promises")
	if site == promises.SharedSite {
		return name
	}
	if *inTurn {
		site = promises.Alone[0]
	}
	return name + "-" + string(site)
}

// names are those of all local clusters of this run.
func names() []string {
	all := map[string]bool{}
	for site := range chosen {
		all[nameOf(site)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func up(ctx context.Context, site promises.Site) (*cluster.Cluster, error) {
	return cluster.Up(ctx, cluster.Options{Name: nameOf(site), Nodes: 4, Version: *version, Log: GinkgoWriter})
}

// deploy brings all images and the operator into the cluster of a site.
func (w workshop) deploy(ctx context.Context, site promises.Site) error {
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

// powerOff powers the nodes of a site off, which cost as much as a promise does. What its API
// server was asked is read when all have ended.
func powerOff(site promises.Site) {
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

// takeDown ends all local clusters, and reads what their API servers were asked before.
func takeDown(ctx context.Context) {
	var logs []string
	var booted []*cluster.Cluster
	for _, name := range names() {
		if local, err := cluster.Open(name); err == nil {
			logs, booted = append(logs, local.AuditLog()), append(booted, local)
		}
	}
	Expect(readRights(logs)).To(Succeed())
	for _, local := range booted {
		if *keep == "" {
			Expect(cluster.Down(ctx, local.Name(), GinkgoWriter)).To(Succeed())
		}
	}
}

// connected are the clusters that this process uses, by their name.
var connected = map[string]*promises.Cluster{}

// clusterOf is the cluster of a site, with the operator in it.
func clusterOf(ctx context.Context, site promises.Site) *promises.Cluster {
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
		if site != promises.SharedSite {
			Expect(work.deploy(ctx, site)).To(Succeed())
		}
		kubeconfig = local.Kubeconfig()
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	c, err := promises.Connect(config)
	Expect(err).NotTo(HaveOccurred())
	c.Operator, c.Images = operator, work.Images
	c.Handovers, c.Faults, c.Fault, c.Freezes, c.Seed = *handovers, *faults, *fault, *freezes, *seed
	if local != nil {
		c.Nodes = local
		// Of the folders of this machine the nodes have a few for themselves, and the
		// cluster's is none of them.
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

// operatorReady waits until every part of the operator is available.
func operatorReady(ctx context.Context, c *promises.Cluster) error {
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

// show prints what a person would look at after a broken promise.
func show(ctx context.Context, c *promises.Cluster) {
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
