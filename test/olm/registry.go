package olm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Registry keeps images on this machine, for the nodes and for programs that
// trust the cluster's authority. What is in it goes with the process.
type Registry struct {
	address string
	server  *http.Server
	client  http.RoundTripper
	folder  string
}

// StartRegistry starts a registry at the cluster's own address. It speaks TLS,
// because operator-sdk asks for the labels of an index image in no other way.
func (m *Manager) StartRegistry() (*Registry, error) {
	pem, err := os.ReadFile(m.Cluster.Authority())
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	folder, err := m.dir("registry")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(m.Cluster.Address(), "0"))
	if err != nil {
		return nil, err
	}
	quiet := log.New(io.Discard, "", 0)
	r := &Registry{
		address: listener.Addr().String(), client: transport, folder: folder,
		server: &http.Server{ErrorLog: quiet, Handler: registry.New(registry.Logger(quiet), registry.WithBlobHandler(registry.NewDiskBlobHandler(folder)))},
	}
	cert, key := m.Cluster.ServingPair()
	go func() {
		if err := r.server.ServeTLS(listener, cert, key); !errors.Is(err, http.ErrServerClosed) {
			m.Say("the registry ended: %v", err)
		}
	}()
	m.Say("a registry serves at %s", r.address)
	return r, nil
}

// Close ends it.
func (r *Registry) Close() error { return r.server.Close() }

// Push makes an image, keeps it under a name such as app:1, and gives its whole
// reference.
func (r *Registry) Push(ctx context.Context, as string, config v1.Config, files ...image.File) (string, error) {
	ref, err := name.NewTag(r.address + "/" + as)
	if err != nil {
		return "", err
	}
	tar := filepath.Join(r.folder, "pushed.tar")
	defer os.Remove(tar)
	if err := image.Write(tar, ref.Name(), config, files...); err != nil {
		return "", err
	}
	content, err := tarball.ImageFromPath(tar, nil)
	if err != nil {
		return "", err
	}
	if err := remote.Write(ref, content, remote.WithContext(ctx), remote.WithTransport(r.client)); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	return ref.Name(), nil
}

// PushBundle makes an image of a bundle as bundle.Dockerfile does: its folders,
// and its annotations as labels.
func (r *Registry) PushBundle(ctx context.Context, b Bundle) (Bundle, error) {
	content, err := os.ReadFile(filepath.Join(b.Folder, "metadata", "annotations.yaml"))
	if err != nil {
		return b, err
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		return b, err
	}
	files, err := filesOf(b.Folder, "/")
	if err != nil {
		return b, err
	}
	b.Image, err = r.Push(ctx, Package+"-bundle:"+b.Name, v1.Config{Labels: metadata.Annotations}, files...)
	return b, err
}

// configsLabel says where in a catalog's image the catalog is.
const configsLabel = "operators.operatorframework.io.index.configs.v1"

// PushCatalog makes an image of a catalog as `opm generate dockerfile` has it: opm
// serves the folder.
func (r *Registry) PushCatalog(ctx context.Context, m *Manager, name, folder string) (string, error) {
	files, err := filesOf(folder, "/configs")
	if err != nil {
		return "", err
	}
	config := v1.Config{
		User: user, Env: []string{"PATH=/bin"}, Labels: map[string]string{configsLabel: "/configs"},
		Entrypoint: []string{"/bin/opm"}, Cmd: []string{"serve", "/configs"},
	}
	return r.Push(ctx, name, config, append(m.images.opmFiles(), files...)...)
}

// filesOf are the files of a folder, as an image has them at a path.
func filesOf(folder, at string) ([]image.File, error) {
	files := []image.File{{Path: at, Dir: true}}
	if at == "/" {
		files = nil
	}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, path)
		files = append(files, image.File{Path: filepath.Join(at, inside), Source: path, Mode: 0o644})
		return err
	})
	return files, err
}
