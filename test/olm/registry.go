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

	"github.com/stateful-operator/stateful-operator/test/bundle"
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

// ref is the whole reference of an image such as app:1.
func (r *Registry) ref(as string) string { return r.address + "/" + as }

// push writes an image's tar by write, and keeps the image.
func (r *Registry) push(ctx context.Context, as string, write func(ref, tar string) error) (string, error) {
	ref, err := name.NewTag(r.ref(as))
	if err != nil {
		return "", err
	}
	tar := filepath.Join(r.folder, "pushed.tar")
	defer os.Remove(tar)
	if err := write(ref.Name(), tar); err != nil {
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

// PushBundle keeps the image of a bundle, as `make bundle-image` makes it.
func (r *Registry) PushBundle(ctx context.Context, b Bundle) (Bundle, error) {
	var err error
	b.Image, err = r.push(ctx, Package+"-bundle:"+b.Name, func(ref, tar string) error { return bundle.WriteImage(b.Folder, ref, tar) })
	return b, err
}

// PushCatalog keeps the image of a catalog, as `make catalog-image` makes it.
func (r *Registry) PushCatalog(ctx context.Context, m *Manager, name, folder string) (string, error) {
	return r.push(ctx, Package+"-catalog:"+name, func(ref, tar string) error {
		return bundle.WriteCatalogImage(ctx, folder, ref, tar, bundle.Programs{OPM: m.OPM, Probe: filepath.Join(m.images.opmDir, "grpc_health_probe")})
	})
}

// PushIndex keeps an image of an empty catalog, which `operator-sdk run bundle`
// puts its bundle into. It runs opm by a shell.
func (r *Registry) PushIndex(ctx context.Context, m *Manager) (string, error) {
	files := append(m.images.opmFiles(), image.File{Path: "/configs", Dir: true})
	config := v1.Config{
		User: user, Env: []string{"PATH=/bin"}, Entrypoint: []string{"/bin/opm"},
		Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
	}
	return r.push(ctx, "index:empty", func(ref, tar string) error { return image.Write(tar, ref, config, files...) })
}
