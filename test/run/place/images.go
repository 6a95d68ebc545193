package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// Program builds the image of a program, unless Open already did, loads it into the nodes, and returns
// its name on the nodes.
func (p Place) Program(ctx context.Context, wanted program.Program) (ref string, err error) {
	if p.Kind == Simulated {
		return wanted.Ref + ":simulated", nil
	}
	ref, done := p.built[wanted.Ref]
	if !done {
		if ref, err = wanted.Write(ctx); err != nil {
			return "", err
		}
	}
	return p.Load(ctx, ref, wanted.Tar)
}

// Load loads an image into the nodes and returns its name there.
func (p Place) Load(ctx context.Context, ref, tar string) (string, error) {
	if p.Local == nil {
		if p.noWay != nil {
			return "", p.noWay
		}
		return p.way.bring(ctx, ref, tar)
	}
	// The note is in the cluster's folder, so it is removed with the cluster.
	note := filepath.Join(p.Local.Dir(), "loaded-"+filepath.Base(tar))
	loaded, err := os.ReadFile(note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if strings.TrimSpace(string(loaded)) == ref {
		fmt.Printf("%s is already in the cluster\n", ref)
		return ref, nil
	}
	fmt.Printf("loading %s into the nodes …\n", ref)
	if err := p.Local.LoadImage(ctx, tar); err != nil {
		return "", err
	}
	return ref, os.WriteFile(note, []byte(ref+"\n"), 0o644)
}

// way defines how images are loaded into the nodes of a given cluster: by a command whose argument TAR
// is the file, or through a registry.
type way struct {
	argv     []string
	registry string // name of the operator's image, the prefix of the other images' names
}

// findWay sets the way to load images into the cluster of KUBECONFIG.
func (p *Place) findWay(ctx context.Context) error {
	raw, err := p.config().RawConfig()
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := p.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	if p.way, p.noWay = chooseWay(raw.CurrentContext, nodes.Items, os.Getenv("IMAGE")); p.noWay == nil {
		fmt.Println("images are loaded into the nodes by", p.way)
	}
	return nil
}

// loaders are commands that load images into clusters of a kind, which is detected by the context's
// prefix or by the nodes' names. NAME is the cluster's name.
var loaders = []struct {
	context, before, after string
	argv                   []string
}{
	{"kind-", "", "-control-plane", []string{"kind", "load", "image-archive", "TAR", "--name", "NAME"}},
	{"k3d-", "k3d-", "-server-0", []string{"k3d", "image", "import", "TAR", "--cluster", "NAME"}},
}

// minikubeProfile is the label of minikube's nodes.
const minikubeProfile = "minikube.k8s.io/name"

func chooseWay(current string, nodes []corev1.Node, image string) (*way, error) {
	if image != "" {
		if _, err := name.ParseReference(image); err != nil || strings.HasPrefix(image, "localhost/") || strings.Contains(image, "@") {
			return nil, fmt.Errorf("IMAGE=%s is not a name[:tag] in a registry", image)
		}
		return &way{registry: image}, nil
	}
	argv := loaderOf(current, nodes)
	if argv != nil {
		if _, err := exec.LookPath(argv[0]); err == nil {
			return &way{argv: argv}, nil
		}
	}
	seen := "not a cluster of kind, minikube or k3d"
	if argv != nil {
		seen = fmt.Sprintf("a cluster of %s, which is not on the PATH", argv[0])
	}
	return nil, fmt.Errorf("the cluster of KUBECONFIG (context %s) is %s, so images cannot be loaded into its nodes: "+
		"put kind, minikube or k3d on the PATH if it is one of their clusters; or set IMAGE=registry/name, to which images are pushed; "+
		"or unset KUBECONFIG to boot a local cluster", current, seen)
}

// loaderOf returns the command for a cluster, or nil if its kind is unknown.
func loaderOf(current string, nodes []corev1.Node) []string {
	for i := range nodes {
		if profile := nodes[i].Labels[minikubeProfile]; profile != "" {
			return []string{"minikube", "image", "load", "TAR", "--profile", profile}
		}
	}
	for _, l := range loaders {
		cluster, found := strings.CutPrefix(current, l.context)
		for i := 0; !found && i < len(nodes); i++ {
			if rest, begins := strings.CutPrefix(nodes[i].Name, l.before); begins {
				cluster, found = strings.CutSuffix(rest, l.after)
			}
		}
		if found {
			return replaced(l.argv, "NAME", cluster)
		}
	}
	return nil
}

func replaced(argv []string, word, by string) []string {
	return strings.Split(strings.ReplaceAll(strings.Join(argv, "\x00"), word, by), "\x00")
}

func (w *way) String() string {
	if w.registry != "" {
		repository, _ := cutTag(w.registry)
		return fmt.Sprintf("pushing: the operator's image as %s, the others as %s-<name>", w.registry, repository)
	}
	return strings.Join(w.argv, " ")
}

// bring loads an image and returns its name on the nodes.
func (w *way) bring(ctx context.Context, ref, tar string) (string, error) {
	if w.registry != "" {
		return w.push(ctx, ref, tar)
	}
	argv := replaced(w.argv, "TAR", tar)
	fmt.Println(strings.Join(argv, " "))
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return ref, nil
}

// push pushes an image with the credentials that docker login, or an equivalent, has stored.
func (w *way) push(ctx context.Context, ref, tar string) (string, error) {
	target, err := name.ParseReference(w.nameOf(ref))
	if err != nil {
		return "", err
	}
	image, err := tarball.ImageFromPath(tar, nil)
	if err != nil {
		return "", err
	}
	fmt.Printf("pushing %s …\n", target)
	if err := remote.Write(target, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w", target, err)
	}
	return target.String(), nil
}

// nameOf returns the name of an image in the registry. The default tag depends on the image's content.
func (w *way) nameOf(ref string) string {
	repository, tag := cutTag(w.registry)
	own, content := cutTag(ref)
	switch {
	case path.Base(own) != "stateful-operator":
		return repository + "-" + path.Base(own) + ":" + content
	case tag == "":
		return repository + ":" + content
	}
	return w.registry
}

// cutTag splits a reference into repository and tag. A registry may have a port.
func cutTag(ref string) (repository, tag string) {
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i], ref[i+1:]
	}
	return ref, ""
}
