package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// The images that every node has from the start.
const (
	PauseImage   = "localhost/pause:1"
	BusyboxImage = "localhost/busybox:1"
)

// sampleImages are names in config/samples under which every node has BusyboxImage too, since
// nodes fetch nothing.
var sampleImages = []string{"docker.io/library/busybox:1.37", "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"}

// WebServer is what a shell of BusyboxImage does to serve $GREETING, or "hello", on
// port 8080 until it is told to end.
const WebServer = `echo "${GREETING:-hello}" > /tmp/index.html; httpd -p 8080 -h /tmp; trap 'exit 0' TERM; sleep 2147483647 & wait`

// LoadImage imports a tar, such as image.Write makes, into every node.
func (c *Cluster) LoadImage(ctx context.Context, tar string) error {
	tar, err := filepath.Abs(tar)
	if err != nil {
		return err
	}
	var steps []func() error
	for _, n := range c.nodes() {
		steps = append(steps, func() error { return c.importImage(ctx, n, tar) })
	}
	return parallel(steps...)
}

func (c *Cluster) importImage(ctx context.Context, n node, tar string) error {
	if !c.process(n.name).alive() {
		return fmt.Errorf("%s does not run, so it cannot take image %s", n.name, tar)
	}
	if err := c.images(ctx, n, "import", "--snapshotter", snapshotter(c.dir), tar); err != nil {
		return fmt.Errorf("loading an image into %s: %w", n.name, err)
	}
	return nil
}

// nameSamples gives BusyboxImage the names of sampleImages.
func (c *Cluster) nameSamples(ctx context.Context, n node) error {
	args := append([]string{"tag", "--force", BusyboxImage}, sampleImages...)
	if err := c.images(ctx, n, args...); err != nil {
		return fmt.Errorf("naming images of samples on %s: %w", n.name, err)
	}
	return nil
}

// images runs a command of ctr on the images that the kubelet of a node knows.
func (c *Cluster) images(ctx context.Context, n node, args ...string) error {
	ctr := filepath.Join(c.state.Sets[Containerd], "ctr")
	return run(ctx, append([]string{ctr, "--address", c.containerdSocket(n), "--namespace", "k8s.io", "images"}, args...)...)
}

// baseImages makes the tars of the pause and busybox images once for all
// clusters and returns their paths.
func (c *Cluster) baseImages(ctx context.Context) ([]string, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	root, err := projectRoot()
	if err != nil {
		return nil, err
	}
	pauseSource := filepath.Join(root, "test", "cluster", "images", "pause", "main.go")
	pause, err := imageTar(cache, "pause", pauseSource)
	if err != nil {
		return nil, err
	}
	busybox, err := imageTar(cache, "busybox", "/bin/busybox")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(pause); err != nil {
		c.say("building the pause image …")
		if err := writePause(ctx, c.log, pause, filepath.Dir(pauseSource)); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(busybox); err != nil {
		c.say("building the busybox image …")
		if err := writeBusybox(ctx, busybox); err != nil {
			return nil, err
		}
	}
	return []string{pause, busybox}, nil
}

// imageTar names a tar by what its image is made of.
func imageTar(cache, name, source string) (string, error) {
	content, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return filepath.Join(cache, "images", fmt.Sprintf("%s-%x.tar", name, sum[:4])), nil
}
