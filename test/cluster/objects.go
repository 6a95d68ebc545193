package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stateful-operator/stateful-operator/test/cluster/volumes"
)

// makeObjects creates the initial objects of a cluster.
func (c *Cluster) makeObjects(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if _, err := client.StorageV1().StorageClasses().Create(ctx, storageClass(), metav1.CreateOptions{}); ignoreExisting(err) != nil {
		return fmt.Errorf("create the storage class: %w", err)
	}
	if c.state.Nodes == 0 {
		return nil
	}
	return c.makeDNSService(ctx, client)
}

func storageClass() *storagev1.StorageClass {
	wait, del, grow := storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete, true
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "standard",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          volumes.Provisioner,
		VolumeBindingMode:    &wait,
		ReclaimPolicy:        &del,
		AllowVolumeExpansion: &grow,
	}
}

// makeDNSService makes CoreDNS available to pods at the usual address. CoreDNS is a process on the
// host, so the Service has no selector and its endpoint is created explicitly.
func (c *Cluster) makeDNSService(ctx context.Context, client kubernetes.Interface) error {
	udp, tcp, port, ready := corev1.ProtocolUDP, corev1.ProtocolTCP, int32(53), true
	nameUDP, nameTCP := "dns", "dns-tcp"
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-dns"},
		Spec: corev1.ServiceSpec{
			ClusterIP: dnsAddress,
			Ports: []corev1.ServicePort{
				{Name: nameUDP, Protocol: udp, Port: port},
				{Name: nameTCP, Protocol: tcp, Port: port},
			},
		},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "kube-dns",
			Labels: map[string]string{discoveryv1.LabelServiceName: "kube-dns", discoveryv1.LabelManagedBy: "stateful-operator-test-cluster"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{c.state.Address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports: []discoveryv1.EndpointPort{
			{Name: &nameUDP, Protocol: &udp, Port: &port},
			{Name: &nameTCP, Protocol: &tcp, Port: &port},
		},
	}
	if _, err := client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); ignoreExisting(err) != nil {
		return fmt.Errorf("create the DNS service: %w", err)
	}
	if _, err := client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); ignoreExisting(err) != nil {
		return fmt.Errorf("create the DNS endpoint: %w", err)
	}
	return nil
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *Cluster) startDNS() error {
	corefile := c.path("Corefile")
	content := strings.NewReplacer("ADDRESS", c.state.Address, "KUBECONFIG", c.Kubeconfig()).Replace(corefileText)
	if err := os.WriteFile(corefile, []byte(content), 0o644); err != nil {
		return err
	}
	return c.start("coredns", filepath.Join(c.state.Sets[CoreDNS], "coredns"), "-conf", corefile)
}

// corefileText is the configuration of CoreDNS. Names of the cluster are not cached: tests look up
// new pods immediately, and a cached NXDOMAIN would last half a minute.
const corefileText = `.:53 {
    bind ADDRESS
    errors
    ready ADDRESS:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig KUBECONFIG
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 1
    }
    cache 30 {
        disable success cluster.local
        disable denial cluster.local
    }
    forward . /etc/resolv.conf
}
`

// dnsAnswers reports whether CoreDNS is synced with the cluster.
func (c *Cluster) dnsAnswers() bool {
	conn, err := net.Dial("tcp", net.JoinHostPort(c.state.Address, "8181"))
	if err != nil {
		return false
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /ready HTTP/1.0\r\n\r\n")
	var status [12]byte
	_, err = conn.Read(status[:])
	return err == nil && string(status[9:]) == "200"
}
