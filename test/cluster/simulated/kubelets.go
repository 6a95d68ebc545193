// Package simulated stands in for the kubelets of nodes that there are not. Commands
// that are sent to their containers are answered by an application in memory, which
// has nothing but a role; each is done at once. Play shows pods as kubelets would;
// where kwok does that, Identify adds what it leaves out.
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

// Kubelets are those of all simulated nodes.
type Kubelets struct {
	admin kubernetes.Interface
	// Name gives the name that a command has among those of a ReplicatedStatefulSet.
	// By itself that is its first word.
	Name func(ctx context.Context, pod types.NamespacedName, argv []string) string

	server *http.Server
	pods   cache.Store
	see    func(context.Context, *corev1.Pod) // shows a pod, as Watch was told

	mu    sync.Mutex
	roles map[types.NamespacedName]string // by pod
	told  []Order
}

// Order is a command that arrived.
type Order struct {
	At   time.Time
	Pod  types.NamespacedName
	Name string
}

// The roles of an application. One that has stopped has none.
const (
	Primary   = "primary"
	Secondary = "secondary"
)

// crash is a command of our own, which ends the application and not its container.
const crash = "crash"

// Serve answers until Close for the kubelets of as many simulated nodes. dir is the folder
// of their cluster.
func Serve(ctx context.Context, admin kubernetes.Interface, dir string, nodes int) (*Kubelets, error) {
	// The API server trusts what the cluster's authority signed for the loopback address;
	// its own certificate is that.
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
	// They speak WebSocket, as those of Kubernetes 1.36 do.
	patch := fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}},"declaredFeatures":["ExtendWebSocketsToKubelet"]}}`,
		listener.Addr().(*net.TCPAddr).Port)
	for i := range nodes {
		node := cluster.SimulatedNode(i + 1)
		if _, err := admin.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			k.Close()
			return nil, fmt.Errorf("registering the kubelet of %s: %w", node, err)
		}
	}
	return k, nil
}

func newKubelets(admin kubernetes.Interface) *Kubelets {
	return &Kubelets{admin: admin, roles: map[types.NamespacedName]string{},
		Name: func(_ context.Context, _ types.NamespacedName, argv []string) string { return argv[0] }}
}

// Close ends what Serve began.
func (k *Kubelets) Close() { _ = k.server.Close() }

// Watch shows the pods of a namespace ("" is all) to see until ctx ends: at each change,
// when a command changed the role of the application, and every 10 s. Call it once, before
// commands come.
func (k *Kubelets) Watch(ctx context.Context, namespace string, see func(context.Context, *corev1.Pod)) {
	show := func(obj any) {
		if pod, is := obj.(*corev1.Pod); is {
			go see(ctx, pod) // the next pod does not wait
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

// Identify gives the container of a pod that runs an id.
func (k *Kubelets) Identify(ctx context.Context, pod *corev1.Pod) {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].ContainerID != "" {
		return
	}
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/status/containerStatuses/0/containerID","value":"simulated://%s"}]`, pod.UID)
	_, _ = k.admin.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
}

// SetReady says of a pod what its readiness probe would.
func (k *Kubelets) SetReady(ctx context.Context, pod types.NamespacedName, ready corev1.ConditionStatus) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}]}}`, ready, ready)
	_, err := k.admin.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// Kill ends the application of a pod; its container runs on.
func (k *Kubelets) Kill(pod types.NamespacedName) { k.forget(pod) }

func (k *Kubelets) forget(pod types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.roles, pod)
}

// Role is that of the application of a pod.
func (k *Kubelets) Role(pod types.NamespacedName) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.roles[pod]
}

// Running is how many applications run.
func (k *Kubelets) Running() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.roles)
}

// Since are the commands that arrived after that time, in order.
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
			return // the upgrader has answered
		}
		defer conn.Close()
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channelStdout}, stdout...))
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{channelStatus}, ending(code)...))
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_, _, _ = conn.ReadMessage() // until the other side closes: then what was sent has arrived
	})
	return mux
}

// The channels of exec over WebSocket.
const (
	channelStdout = 1
	channelStatus = 3
)

// obey does a command, and gives what it prints and its exit code.
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
		return "this container is simulated, and knows only the commands of its ReplicatedStatefulSet, and crash\n", 127
	}
	k.replay(pod)
	return "", 0
}

// ending is how a kubelet tells an exit code.
func ending(code int) []byte {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}}}
	}
	text, _ := json.Marshal(status) // it has no field that cannot be
	return text
}
