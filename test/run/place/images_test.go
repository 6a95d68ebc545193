package place

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
)

func node(name string, labels map[string]string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// programs creates programs that log their arguments, on an otherwise empty PATH.
func programs(t *testing.T, names ...string) (called func() string) {
	t.Helper()
	folder := t.TempDir()
	log := filepath.Join(folder, "called")
	for _, name := range names {
		script := "#!/bin/sh\necho " + name + " \"$@\" >> " + log + "\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	return func() string {
		text, _ := os.ReadFile(log) // missing if none was called
		return string(text)
	}
}

func TestImagesAreLoadedByTheProgramOfTheCluster(t *testing.T) {
	for _, row := range []struct {
		context string
		nodes   []corev1.Node
		want    string
	}{
		{"kind-two", nil, "kind load image-archive a.tar --name two\n"},
		{"admin", []corev1.Node{node("two-worker", nil), node("two-control-plane", nil)}, "kind load image-archive a.tar --name two\n"},
		{"k3d-two", nil, "k3d image import a.tar --cluster two\n"},
		{"admin", []corev1.Node{node("k3d-two-server-0", nil)}, "k3d image import a.tar --cluster two\n"},
		{"two", []corev1.Node{node("two", map[string]string{minikubeProfile: "two"})}, "minikube image load a.tar --profile two\n"},
	} {
		g := NewWithT(t)
		called := programs(t, "kind", "k3d", "minikube")
		way, err := chooseWay(row.context, row.nodes, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(way.bring(t.Context(), "localhost/a:1", "a.tar")).To(Equal("localhost/a:1"))
		g.Expect(called()).To(Equal(row.want))
	}
}

func TestWithoutAWayTheRemediesAreNamed(t *testing.T) {
	g := NewWithT(t)
	programs(t, "minikube")
	for context, seen := range map[string]string{"gke_shop": "not a cluster of kind, minikube or k3d", "kind-two": "a cluster of kind, which is not on the PATH"} {
		_, err := chooseWay(context, []corev1.Node{node("node-1", nil)}, "")
		g.Expect(err).To(MatchError(And(ContainSubstring(seen), ContainSubstring("put kind, minikube or k3d on the PATH"),
			ContainSubstring("IMAGE=registry/name"), ContainSubstring("unset KUBECONFIG"))))
	}
	for _, image := range []string{"localhost/a:1", "example.com/A", "example.com/a@sha256:" + strings.Repeat("0", 64)} {
		_, err := chooseWay("gke_shop", nil, image)
		g.Expect(err).To(MatchError(ContainSubstring("not a name[:tag] in a registry")))
	}
}

func TestImagesArePushedBesideTheOperators(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New())
	defer server.Close()
	prefix := strings.TrimPrefix(server.URL, "http://") + "/team/operator"
	tar := filepath.Join(t.TempDir(), "a.tar")
	g.Expect(image.Write(tar, "localhost/a:1", v1.Config{}, image.File{Path: "/a", Body: []byte("a")})).To(Succeed())
	for _, row := range []struct{ given, ref, want string }{
		{prefix, "localhost/stateful-operator:0123", prefix + ":0123"},
		{prefix + ":dev", "localhost/stateful-operator:0123", prefix + ":dev"},
		{prefix + ":dev", "localhost/ledger:4567", prefix + "-ledger:4567"},
	} {
		way, err := chooseWay("kind-two", nil, row.given)
		g.Expect(err).NotTo(HaveOccurred(), "an explicit setting takes precedence over a detected one")
		g.Expect(way.bring(t.Context(), row.ref, tar)).To(Equal(row.want))
		ref, err := name.ParseReference(row.want)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = remote.Image(ref)
		g.Expect(err).NotTo(HaveOccurred())
	}
}
