package olm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/bundle"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

// Registry is an image registry on this machine, for the nodes and for programs that trust the
// cluster's authority. Its content is lost when the process ends.
type Registry struct {
	address string
	server  *http.Server
	client  http.RoundTripper
	folder  string
}

// StartRegistry starts a registry at the cluster's address. It uses TLS, because operator-sdk reads the
// labels of an index image only through TLS.
func (m *Manager) StartRegistry() *Registry {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(m.read(m.Cluster.Authority())))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	listener, err := net.Listen("tcp", net.JoinHostPort(m.Cluster.Address(), "0"))
	m.Expect(err).To(gomega.Succeed())
	quiet, folder := log.New(io.Discard, "", 0), m.dir("registry")
	r := &Registry{
		address: listener.Addr().String(), client: transport, folder: folder,
		server: &http.Server{ErrorLog: quiet, Handler: registry.New(registry.Logger(quiet), registry.WithBlobHandler(registry.NewDiskBlobHandler(folder)))},
	}
	cert, key := m.Cluster.ServingPair()
	go func() {
		if err := r.server.ServeTLS(listener, cert, key); !errors.Is(err, http.ErrServerClosed) {
			m.Say("the registry stopped: %v", err)
		}
	}()
	m.Say("a registry serves at %s", r.address)
	return r
}

// Close stops the registry.
func (r *Registry) Close() error { return r.server.Close() }

// push writes the tar file of an image such as app:1 with write, pushes the image, and returns its full
// reference.
func (m *Manager) push(ctx context.Context, r *Registry, as string, write func(ref, tar string) error) string {
	ref, tar := r.address+"/"+as, filepath.Join(r.folder, "pushed.tar")
	defer os.Remove(tar)
	m.Expect(write(ref, tar)).To(gomega.Succeed())
	m.Expect(bundle.Push(ctx, tar, ref, remote.WithTransport(r.client))).To(gomega.Succeed(), "push %s", ref)
	return ref
}

// PushBundle pushes the image of a bundle, equivalent to that of `make bundle-image`.
func (m *Manager) PushBundle(ctx context.Context, r *Registry, b Bundle) Bundle {
	b.Image = m.push(ctx, r, Package+"-bundle:"+b.Name, func(ref, tar string) error { return bundle.WriteImage(b.Folder, ref, tar) })
	return b
}

// PushCatalog pushes the image of a catalog, equivalent to that of `make catalog-image`.
func (m *Manager) PushCatalog(ctx context.Context, r *Registry, name, folder string) string {
	return m.push(ctx, r, Package+"-catalog:"+name, func(ref, tar string) error {
		return bundle.WriteCatalogImage(ctx, folder, ref, tar, bundle.Programs{OPM: m.OPM, Probe: filepath.Join(m.images.opmDir, "grpc-health-probe")})
	})
}

// PushIndex pushes an image of an empty catalog, to which `operator-sdk run bundle` adds its bundle. It
// runs opm with a shell.
func (m *Manager) PushIndex(ctx context.Context, r *Registry) string {
	files := append(m.images.opmFiles(), image.File{Path: "/configs", Dir: true})
	config := v1.Config{
		User: user, Env: []string{"PATH=/bin"}, Entrypoint: []string{"/bin/opm"},
		Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
	}
	return m.push(ctx, r, "index:empty", func(ref, tar string) error { return image.Write(tar, ref, config, files...) })
}
