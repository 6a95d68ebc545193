package hostile

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/simulated"
)

// node is the node of a correct kubelet. The kubelet of hostileNode handles commands like the hostile
// tenant's programs.
var node = cluster.SimulatedNode(1)

const hostileNode = "hostile"

// babble selects the behavior of the hostile tenant's commands: print endlessly if true, otherwise hang.
var babble atomic.Bool

// makeNodes creates the nodes and starts their simulated kubelets.
func (s *site) makeNodes(t *testing.T) {
	t.Helper()
	g, ctx := NewWithT(t), s.ctx
	core, err := kubernetes.NewForConfig(s.server.Config)
	g.Expect(err).NotTo(HaveOccurred())
	hostile := httptest.NewTLSServer(http.HandlerFunc(waste))
	t.Cleanup(func() {
		hostile.CloseClientConnections()
		hostile.Close()
	})
	for name, port := range map[string]int{node: 1, hostileNode: hostile.Listener.Addr().(*net.TCPAddr).Port} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		g.Expect(s.admin.Create(ctx, n)).To(Succeed())
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
		n.Status.DeclaredFeatures = []string{"ExtendWebSocketsToKubelet"}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		g.Expect(s.admin.Status().Update(ctx, n)).To(Succeed())
	}
	// The API server of this test does not verify the kubelets' certificates.
	folder := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Mkdir(filepath.Join(folder, "certs"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "certs", "apiserver.crt"), certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "certs", "apiserver.key"), key, 0o600)).To(Succeed())
	kubelets, err := simulated.Serve(ctx, core, folder, 1)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(kubelets.Close)
	kubelets.Watch(ctx, metav1.NamespaceAll, kubelets.Play)
}

// waste handles a command such that it never ends.
func waste(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has responded
	}
	defer conn.Close()
	const stdout = "\x01"
	for page := []byte(stdout + strings.Repeat("9", 32<<10)); err == nil && babble.Load(); {
		err = conn.WriteMessage(websocket.BinaryMessage, page)
		time.Sleep(100 * time.Millisecond) // this process also runs the other tenants' kubelets
	}
	for err == nil {
		_, _, err = conn.ReadMessage() // answers pings
	}
}

// collect replaces the garbage collector: it deletes all children in a namespace.
func (s *site) collect(ctx context.Context, namespace string) error {
	for _, kind := range []client.Object{&appsv1.StatefulSet{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &corev1.ConfigMap{},
		&policyv1.PodDisruptionBudget{}, &appsv1.ControllerRevision{}} {
		if err := s.admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	return nil
}
