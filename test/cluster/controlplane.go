package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

const (
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the Service kubernetes
	dnsAddress     = "10.96.0.10"
	// unlimited is a request rate that does not limit tests.
	unlimited = "5000"
)

// controlPlane returns the names of the programs that every cluster needs.
func (c *Cluster) controlPlane() []string {
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "volumes"}
	if c.state.Nodes > 0 {
		names = append(names, "coredns")
	}
	return names
}

func (c *Cluster) endpoint() string {
	return fmt.Sprintf("https://%s", net.JoinHostPort(c.state.Address, fmt.Sprint(c.state.Ports["apiserver"])))
}

// choosePorts chooses free ports on the loopback address. A cluster with nodes has its own address,
// where the API server uses its usual port.
func (c *Cluster) choosePorts() error {
	wanted := []string{"etcd", "etcd-peer"}
	if c.state.Nodes == 0 {
		wanted = append(wanted, "apiserver")
		c.state.Address = "127.0.0.1"
	} else {
		c.state.Ports["apiserver"] = 6443
	}
	ports, err := FreePorts("127.0.0.1", len(wanted))
	for i, port := range ports {
		c.state.Ports[wanted[i]] = port
	}
	return err
}

// FreePorts returns n different free TCP ports of an address of this machine, or of all addresses if it
// is empty. They are not reserved.
func FreePorts(address string, n int) (ports []int, err error) {
	for range n {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			return nil, err
		}
		defer listener.Close() // all are open until all are chosen
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (c *Cluster) startEtcd() error {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.state.Ports["etcd"])
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.state.Ports["etcd-peer"])
	return c.start("etcd", filepath.Join(c.Programs(), "etcd"),
		"--name=default",
		"--data-dir="+c.path("etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer,
		"--unsafe-no-fsync", // the data is deleted with the cluster
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	)
}

// StartAPIServer starts the API server and waits until it is ready.
func (c *Cluster) StartAPIServer() error {
	return c.startAPIServer(context.Background())
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	if c.process("kube-apiserver").alive() {
		return nil
	}
	args := append([]string{filepath.Join(c.Programs(), "kube-apiserver")}, c.apiServerFlags()...)
	if err := c.start("kube-apiserver", args...); err != nil {
		return err
	}
	if err := poll(ctx, 2*time.Minute, func() bool { return c.answers(ctx) || !c.process("kube-apiserver").alive() }); err != nil {
		return fmt.Errorf("the API server does not become ready: %w", err)
	}
	if !c.process("kube-apiserver").alive() {
		return fmt.Errorf("the API server exited; see %s", c.path("logs", "kube-apiserver.log"))
	}
	return nil
}

// StopAPIServer stops the API server. The rest of the cluster continues to run.
func (c *Cluster) StopAPIServer() error {
	return c.process("kube-apiserver").stop(context.Background(), 3*time.Second)
}

func (c *Cluster) apiServerFlags() []string {
	cert := func(name string) string { return c.path("certs", name) }
	flags := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.state.Ports["etcd"]),
		"--bind-address=" + c.state.Address,
		"--advertise-address=" + c.state.Address,
		fmt.Sprintf("--secure-port=%d", c.state.Ports["apiserver"]),
		"--tls-cert-file=" + cert("apiserver.crt"), "--tls-private-key-file=" + cert("apiserver.key"),
		"--client-ca-file=" + cert("ca.crt"),
		"--kubelet-client-certificate=" + cert("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + cert("apiserver-kubelet.key"),
		"--kubelet-certificate-authority=" + cert("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + cert("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + cert("front-proxy.crt"), "--proxy-client-key-file=" + cert("front-proxy.key"),
		// No kube-proxy runs on the API server's host, so it must dial the pods of a webhook's Service
		// directly.
		"--enable-aggregator-routing=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + cert("service-account.crt"),
		"--service-account-signing-key-file=" + cert("service-account.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--enable-admission-plugins=" + strings.Join(append([]string{"NodeRestriction"}, c.state.AdmissionPlugins...), ","),
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.AuditLog(), "--audit-log-maxsize=4096",
	}
	if c.state.Nodes == 0 {
		// An endpoint must not have a loopback address.
		flags = append(flags, "--endpoint-reconciler-type=none")
	}
	return append(flags, c.featureGates()...)
}

// auditPolicy logs the bodies of the requests that test/traces checks: writes of Leases that fence programs, reports of
// kubelets about pods, and taints of nodes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
  namespaces: [kube-node-lease, kube-system, stateful-operator-system]
- level: RequestResponse
  verbs: [create, update, patch]
  resources: [{group: coordination.k8s.io, resources: [leases]}]
- level: Request
  verbs: [update, patch, delete]
  userGroups: ["system:nodes"]
  resources: [{group: "", resources: [pods, pods/status]}]
- level: Request
  verbs: [update, patch]
  resources: [{group: "", resources: [nodes]}]
- level: Metadata
`

// nodeGrace is the time without heartbeats after which a node is unreachable. It is half of the
// default, and so are the kubelets' leases (nodeLeaseDurationSeconds), because many tests wait for it.
const nodeGrace = 25 * time.Second

func (c *Cluster) startControllers() error {
	rate := []string{"--kube-api-qps=" + unlimited, "--kube-api-burst=" + unlimited, "--leader-elect=false", "--secure-port=0"}
	rate = append(rate, c.featureGates()...)
	manager := append([]string{
		filepath.Join(c.Programs(), "kube-controller-manager"),
		"--kubeconfig=" + c.path("kcm.kubeconfig"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.path("certs", "service-account.key"),
		"--root-ca-file=" + c.path("certs", "ca.crt"),
		"--cluster-signing-cert-file=" + c.path("certs", "ca.crt"),
		"--cluster-signing-key-file=" + c.path("certs", "ca.key"),
	}, rate...)
	if c.state.Nodes > 0 {
		manager = append(manager, "--node-monitor-grace-period="+nodeGrace.String())
	}
	scheduler := append([]string{
		filepath.Join(c.Programs(), "kube-scheduler"),
		"--kubeconfig=" + c.path("scheduler.kubeconfig"),
	}, rate...)
	if err := c.startForGood("kube-controller-manager", manager...); err != nil {
		return err
	}
	return c.startForGood("kube-scheduler", scheduler...)
}

func (c *Cluster) featureGates() []string {
	var gates []string
	for name, on := range c.state.FeatureGates {
		gates = append(gates, fmt.Sprintf("%s=%t", name, on))
	}
	if len(gates) == 0 {
		return nil
	}
	sort.Strings(gates)
	return []string{"--feature-gates=" + strings.Join(gates, ",")}
}

// answers reports whether the API server is ready.
func (c *Cluster) answers(ctx context.Context) bool {
	client, err := c.client()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err == nil
}

// writeKubeconfig writes <name>.kubeconfig with the certificate of that name. The certificates are
// embedded, so the file can be copied.
func (c *Cluster) writeKubeconfig(name string) error {
	var data [3]string
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		content, err := os.ReadFile(c.path("certs", file))
		if err != nil {
			return err
		}
		data[i] = base64.StdEncoding.EncodeToString(content)
	}
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[2]s}}]
clusters: [{name: %[1]s, cluster: {server: "%[3]s", certificate-authority-data: %[4]s}}]
users: [{name: %[2]s, user: {client-certificate-data: %[5]s, client-key-data: %[6]s}}]
`, c.state.Name, name, c.endpoint(), data[0], data[1], data[2])
	return os.WriteFile(c.path(name+".kubeconfig"), []byte(content), 0o600)
}
