package main

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
)

// kubelets stands in for what kwok's nodes have not: an id for each container of
// a namespace, and in it an application that takes commands. Each is done at once.
type kubelets struct {
	admin     *kubernetes.Clientset
	namespace string
	server    *http.Server
	stop      context.CancelFunc

	mu    sync.Mutex
	roles map[string]string // by pod
	told  []order
}

// order is a command that arrived.
type order struct {
	at        time.Time
	pod, name string
}

// The roles of an application. One that has stopped has none.
const (
	rolePrimary   = "primary"
	roleSecondary = "secondary"
)

// startKubelets serves the simulated nodes.
func (s *site) startKubelets(ctx context.Context, namespace string) (*kubelets, error) {
	// The API server trusts what the cluster's authority signed for this address;
	// its own certificate is that.
	certs := filepath.Join(s.cluster.Dir(), "certs")
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "apiserver.crt"), filepath.Join(certs, "apiserver.key"))
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	k := &kubelets{admin: s.admin, namespace: namespace, stop: stop, roles: map[string]string{}}
	k.server = &http.Server{Handler: k.handler(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go func() { _ = k.server.ServeTLS(listener, "", "") }()
	if err := k.register(ctx, listener.Addr().(*net.TCPAddr).Port); err != nil {
		k.close()
		return nil, err
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(s.admin.CoreV1().RESTClient(), "pods", namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { k.identify(ctx, obj) },
			UpdateFunc: func(_, obj any) { k.identify(ctx, obj) },
		},
	})
	go informer.RunWithContext(ctx)
	return k, nil
}

// register tells the API server where the kubelets are, and that they speak
// WebSocket, as those of Kubernetes 1.36 do.
func (k *kubelets) register(ctx context.Context, port int) error {
	patch := fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}},"declaredFeatures":["ExtendWebSocketsToKubelet"]}}`, port)
	for i := range simulatedNodes {
		if _, err := k.admin.CoreV1().Nodes().Patch(ctx, fmt.Sprintf("kwok-%d", i+1), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}

func (k *kubelets) close() {
	k.stop()
	_ = k.server.Close()
}

// identify gives the container of a pod that runs an id.
func (k *kubelets) identify(ctx context.Context, obj any) {
	pod, isPod := obj.(*corev1.Pod)
	if !isPod || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].ContainerID != "" {
		return
	}
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/status/containerStatuses/0/containerID","value":"bench://%s"}]`, pod.UID)
	go func() { // the next pod does not wait
		_, _ = k.admin.CoreV1().Pods(k.namespace).Patch(ctx, pod.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	}()
}

// setReady says of a pod what its readiness probe would.
func (k *kubelets) setReady(ctx context.Context, pod string, ready corev1.ConditionStatus) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}]}}`, ready, ready)
	_, err := k.admin.CoreV1().Pods(k.namespace).Patch(ctx, pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// kill ends the application of a pod; its container runs on.
func (k *kubelets) kill(pod string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.roles, pod)
}

func (k *kubelets) role(pod string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.roles[pod]
}

// running is how many applications run.
func (k *kubelets) running() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.roles)
}

// since are the commands that arrived after that time, in order.
func (k *kubelets) since(from time.Time) []order {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, _ := slices.BinarySearchFunc(k.told, from, func(o order, t time.Time) int { return o.at.Compare(t) })
	return slices.Clone(k.told[i:])
}

func (k *kubelets) handler() http.Handler {
	mux := http.NewServeMux()
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	mux.HandleFunc("GET /exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		stdout, code := k.obey(r.PathValue("pod"), r.URL.Query().Get("command"))
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

// obey does a command, by the name that is its argv[0], and gives what it prints
// and its exit code.
func (k *kubelets) obey(pod, name string) (stdout string, code int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, order{time.Now(), pod, name})
	switch name {
	case v1alpha1.CommandSequence:
		return "1\n", 0
	case v1alpha1.CommandStatus:
		return "", map[string]int{"": 7, roleSecondary: 0, rolePrimary: 8}[k.roles[pod]]
	case v1alpha1.CommandStop:
		delete(k.roles, pod)
	case v1alpha1.CommandSecondary, v1alpha1.CommandDemote:
		k.roles[pod] = roleSecondary
	case v1alpha1.CommandSeed, v1alpha1.CommandPrimary, v1alpha1.CommandPromote:
		k.roles[pod] = rolePrimary
	default:
		return "", 127
	}
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
