// Package simulated simulates the kubelets of nodes that do not exist. Commands in their containers are
// handled immediately by an in-memory application, which only has a role. Play updates pods as kubelets
// would. If kwok does that, Identify adds the status that kwok leaves out.
package simulated

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// Kubelets are the kubelets of all simulated nodes.
type Kubelets struct {
	admin kubernetes.Interface
	// Name returns the name of a command in the commands of its ReplicatedStatefulSet. The default
	// returns the first word.
	Name func(ctx context.Context, pod types.NamespacedName, argv []string) string

	server *http.Server
	pods   cache.Store
	see    func(context.Context, *corev1.Pod) // handles a pod, set by Watch

	mu    sync.Mutex
	roles map[types.NamespacedName]string // by pod
	told  []Order
}

// Order is a received command.
type Order struct {
	At   time.Time
	Pod  types.NamespacedName
	Name string
}

// Roles of an application. A stopped application has none.
const (
	Primary   = "primary"
	Secondary = "secondary"
)

// crash is an additional command. It ends the application but not its container.
const crash = "crash"

// Serve serves the kubelets of the simulated nodes until Close. dir is the folder of their cluster.
func Serve(ctx context.Context, admin kubernetes.Interface, dir string, nodes int) (*Kubelets, error) {
	// The API server trusts certificates of the cluster's authority for the loopback address. Its own
	// certificate is one.
	certs := filepath.Join(dir, "certs")
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "apiserver.crt"), filepath.Join(certs, "apiserver.key"))
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := newKubelets(admin)
	k.server = &http.Server{Handler: k.handler(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go func() { _ = k.server.ServeTLS(listener, "", "") }()
	// They support WebSocket, as the kubelets of Kubernetes 1.36 do.
	patch := fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}},"declaredFeatures":["ExtendWebSocketsToKubelet"]}}`,
		listener.Addr().(*net.TCPAddr).Port)
	for i := range nodes {
		node := cluster.SimulatedNode(i + 1)
		if _, err := admin.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			k.Close()
			return nil, fmt.Errorf("register the kubelet of %s: %w", node, err)
		}
	}
	return k, nil
}

func newKubelets(admin kubernetes.Interface) *Kubelets {
	return &Kubelets{admin: admin, roles: map[types.NamespacedName]string{},
		Name: func(_ context.Context, _ types.NamespacedName, argv []string) string { return argv[0] }}
}

// Close stops Serve.
func (k *Kubelets) Close() { _ = k.server.Close() }

// Watch calls see for the pods of a namespace ("" for all) until ctx ends: for each change, when a
// command changed the role of the application, and every 10 s. Call it once, before commands are
// received.
func (k *Kubelets) Watch(ctx context.Context, namespace string, see func(context.Context, *corev1.Pod)) {
	show := func(obj any) {
		if pod, is := obj.(*corev1.Pod); is {
			go see(ctx, pod) // must not block the next pod
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(k.admin.CoreV1().RESTClient(), "pods", namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		ResyncPeriod:  10 * time.Second,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: show, UpdateFunc: func(_, obj any) { show(obj) },
			DeleteFunc: func(obj any) {
				if pod, is := obj.(*corev1.Pod); is {
					k.forget(nameOf(pod))
				}
			},
		},
	})
	k.pods, k.see = store, see
	go informer.RunWithContext(ctx)
}

// Identify sets the container ID of a running pod.
func (k *Kubelets) Identify(ctx context.Context, pod *corev1.Pod) {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].ContainerID != "" {
		return
	}
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/status/containerStatuses/0/containerID","value":"simulated://%s"}]`, pod.UID)
	_, _ = k.admin.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
}

// SetReady sets the conditions of a pod that its readiness probe would set.
func (k *Kubelets) SetReady(ctx context.Context, pod types.NamespacedName, ready corev1.ConditionStatus) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}]}}`, ready, ready)
	_, err := k.admin.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// Kill ends the application of a pod. Its container continues to run.
func (k *Kubelets) Kill(pod types.NamespacedName) { k.forget(pod) }

func (k *Kubelets) forget(pod types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.roles, pod)
}

// Role returns the role of a pod's application.
func (k *Kubelets) Role(pod types.NamespacedName) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.roles[pod]
}

// Running returns the number of running applications.
func (k *Kubelets) Running() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.roles)
}

// Since returns the commands that were received after a time, in order.
func (k *Kubelets) Since(from time.Time) []Order {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, _ := slices.BinarySearchFunc(k.told, from, func(o Order, t time.Time) int { return o.At.Compare(t) })
	return slices.Clone(k.told[i:])
}

func (k *Kubelets) handler() http.Handler {
	mux := http.NewServeMux()
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	mux.HandleFunc("GET /exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		pod := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
		stdout, code := k.obey(pod, k.Name(r.Context(), pod, r.URL.Query()["command"]))
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return // the upgrader has responded
		}
		defer conn.Close()
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channelStdout}, stdout...))
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channelStatus}, ending(code)...))
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_, _, _ = conn.ReadMessage() // until the other side closes and has therefore received everything
	})
	return mux
}

// Channels of exec over WebSocket.
const (
	channelStdout = 1
	channelStatus = 3
)

// obey runs a command and returns its output and its exit code.
func (k *Kubelets) obey(pod types.NamespacedName, name string) (stdout string, code int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, Order{time.Now(), pod, name})
	switch name {
	case v1alpha1.CommandSequence:
		return "1\n", 0
	case v1alpha1.CommandStatus:
		return "", map[string]int{"": 7, Secondary: 0, Primary: 8}[k.roles[pod]]
	case v1alpha1.CommandStop, crash:
		delete(k.roles, pod)
	case v1alpha1.CommandSecondary, v1alpha1.CommandDemote:
		k.roles[pod] = Secondary
	case v1alpha1.CommandSeed, v1alpha1.CommandPrimary, v1alpha1.CommandPromote:
		k.roles[pod] = Primary
	default:
		return "this container is simulated, and supports only the commands of its ReplicatedStatefulSet, and crash\n", 127
	}
	k.replay(pod)
	return "", 0
}

// ending returns a kubelet's encoding of an exit code.
func ending(code int) []byte {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}}}
	}
	text, _ := json.Marshal(status) // every field can be encoded
	return text
}
