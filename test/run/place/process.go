package place

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// The operator cannot run as pods on simulated nodes. Its parts are processes of this machine, each
// with the rights of its service account. The Service of the webhooks routes to a process.
const (
	simulatedNodes  = 3
	operatorProgram = "build/run/stateful-operator"
	webhookService  = "stateful-operator-webhook-service"
)

// runOperator starts the operator. image is the image from which it copies the gate.
func (p Place) runOperator(ctx context.Context, image string) error {
	path, err := filepath.Abs(operatorProgram)
	if err != nil {
		return err
	}
	ports, err := cluster.FreePorts("", 1+len(parts))
	if err != nil {
		return err
	}
	webhook := ports[0]
	if err := p.routeWebhooks(ctx, webhook); err != nil {
		return err
	}
	for i, part := range parts {
		args := []string{"--components=" + part.component, "--webhook-cert-dir=" + filepath.Join(p.Local.Dir(), "none"),
			"--metrics-bind-address=0", fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[1+i])}
		if part.component != "installer" {
			args = append(args, "--gate-image="+image)
		}
		if part.component == "webhooks" {
			args = append(args, fmt.Sprintf("--webhook-port=%d", webhook))
		}
		if err := p.runPart(ctx, path, part.name, ports[1+i], args); err != nil {
			return err
		}
	}
	return nil
}

// runPart starts a part of the operator, and waits until it is ready.
func (p Place) runPart(ctx context.Context, program, name string, health int, args []string) error {
	kubeconfig, err := p.kubeconfigOf(name)
	if err != nil {
		return err
	}
	err = p.Local.Run(ctx, name, []string{"KUBECONFIG=" + kubeconfig, "WATCH_NAMESPACE=", "POD_NAMESPACE=" + operatorNamespace, "POD_NAME=" + name}, append([]string{program}, args...)...)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		if !p.Local.Alive(name) {
			return false, errors.New("it exited")
		}
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", health))
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	log := filepath.Join(p.Local.Dir(), "logs", name+".log")
	if err != nil {
		return fmt.Errorf("%s does not become ready; see %s: %w", name, log, err)
	}
	fmt.Printf("%s runs as a process of this machine; its log: %s\n", name, log)
	return nil
}

// kubeconfigOf writes the administrator's kubeconfig with impersonation of an account of the operator.
func (p Place) kubeconfigOf(account string) (string, error) {
	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		return "", err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = strings.Join([]string{"system:serviceaccount", operatorNamespace, account}, ":")
	}
	file := filepath.Join(p.Local.Dir(), account+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// routeWebhooks routes the Service of the webhooks, which has no pods, to a port of this machine.
func (p Place) routeWebhooks(ctx context.Context, port int) error {
	address, err := ownAddress()
	if err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: webhookService + "-process"}}
	_, err = controllerutil.CreateOrUpdate(ctx, p.Client, slice, func() error {
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: webhookService, discoveryv1.LabelManagedBy: "make-run"}
		slice.AddressType = discoveryv1.AddressTypeIPv4
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}
		slice.Ports = []discoveryv1.EndpointPort{{Name: new(""), Protocol: new(corev1.ProtocolTCP), Port: new(int32(port))}}
		return nil
	})
	return err
}

// ownAddress returns an address that is valid for an endpoint. The loopback address is not.
func ownAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, one := range all {
		if network, is := one.(*net.IPNet); is && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String(), nil
		}
	}
	return "", errors.New("the API server reaches webhooks only at an IPv4 address other than the loopback one, and this machine has none: connect it to a network")
}
