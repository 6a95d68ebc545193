package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// Images that every node has from the start.
const (
	PauseImage   = "localhost/pause:1"
	BusyboxImage = "localhost/busybox:1"
)

// sampleImages are names of images in config/samples. Every node has BusyboxImage under these names
// too, because nodes pull no images.
var sampleImages = []string{"docker.io/library/busybox:1.37", "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"}

// WebServer is a command for a shell of BusyboxImage. It serves $GREETING, or "hello", on port 8080
// until SIGTERM.
const WebServer = `echo "${GREETING:-hello}" > /tmp/index.html; httpd -p 8080 -h /tmp; trap 'exit 0' TERM; sleep 2147483647 & wait`

// LoadImage imports a tar file, for example from image.Write, into every node.
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
		return fmt.Errorf("%s is not running, so image %s cannot be loaded", n.name, tar)
	}
	if err := c.images(ctx, n, "import", "--snapshotter", snapshotter(c.dir), tar); err != nil {
		return fmt.Errorf("load an image into %s: %w", n.name, err)
	}
	return nil
}

// nameSamples tags BusyboxImage with the names of sampleImages.
func (c *Cluster) nameSamples(ctx context.Context, n node) error {
	args := append([]string{"tag", "--force", BusyboxImage}, sampleImages...)
	if err := c.images(ctx, n, args...); err != nil {
		return fmt.Errorf("tag the images of samples on %s: %w", n.name, err)
	}
	return nil
}

// images runs a ctr command for the images of a node's kubelet.
func (c *Cluster) images(ctx context.Context, n node, args ...string) error {
	ctr := filepath.Join(c.state.Sets[Containerd], "ctr")
	return run(ctx, append([]string{ctr, "--address", c.containerdSocket(n), "--namespace", "k8s.io", "images"}, args...)...)
}

// baseImages writes the tar files of the pause and busybox images once for all clusters, and returns
// their paths.
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

// imageTar returns the path of an image's tar file, with a hash of the image's source.
func imageTar(cache, name, source string) (string, error) {
	content, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return filepath.Join(cache, "images", fmt.Sprintf("%s-%x.tar", name, sum[:4])), nil
}
