package olm

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// grpcPort is the port of catalogs.
const grpcPort = 50051

// served runs `opm serve` on a folder of this machine that each node has too.
const served = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: olm}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {catalog: NAME}}
  template:
    metadata: {labels: {catalog: NAME}}
    spec:
      automountServiceAccountToken: false
      containers:
      - name: opm
        image: IMAGE
        args: [serve, /catalog]
        ports: [{containerPort: 50051}]
        readinessProbe:
          exec: {command: [grpc_health_probe, "-addr=:50051"]}
          periodSeconds: 1
        volumeMounts: [{name: catalog, mountPath: /catalog, readOnly: true}]
        resources: {requests: {cpu: 10m, memory: 50Mi}}
      volumes: [{name: catalog, hostPath: {path: FOLDER, type: Directory}}]
---
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: olm}
spec:
  selector: {catalog: NAME}
  ports: [{port: 50051}]
`

// Serve serves a catalog's folder, and creates its CatalogSource.
func (m *Manager) Serve(ctx context.Context, name, folder string) {
	m.Say("serve catalog %s", name)
	m.Apply(ctx, strings.NewReplacer("NAME", name, "IMAGE", m.images.opm, "FOLDER", folder).Replace(served))
	m.Rolled(ctx, types.NamespacedName{Namespace: Namespace, Name: name})
	m.source(ctx, name, operatorsv1alpha1.CatalogSourceSpec{Address: fmt.Sprintf("%s.%s.svc:%d", name, Namespace, grpcPort)})
}

// ServeImage creates the CatalogSource of a catalog's image. OLM creates the pod.
func (m *Manager) ServeImage(ctx context.Context, name, image string) {
	m.Say("catalog %s is image %s", name, image)
	m.source(ctx, name, operatorsv1alpha1.CatalogSourceSpec{Image: image,
		GrpcPodConfig: &operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: operatorsv1alpha1.Restricted}})
}

// source creates a CatalogSource, and waits until OLM is connected to it.
func (m *Manager) source(ctx context.Context, name string, spec operatorsv1alpha1.CatalogSourceSpec) {
	spec.SourceType, spec.DisplayName, spec.Publisher = operatorsv1alpha1.SourceTypeGrpc, "stateful-operator "+name, "stateful-operator"
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}, Spec: spec}
	m.Expect(client.IgnoreAlreadyExists(m.Client.Create(ctx, source))).To(gomega.Succeed())
	m.Until(ctx, "catalog "+name, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKeyFromObject(source), source)
		if state := source.Status.GRPCConnectionState; err == nil && (state == nil || state.LastObservedState != "READY") {
			err = fmt.Errorf("connection %+v; %s", state, source.Status.Message)
		}
		return err
	})
}

// RemoveCatalog deletes a CatalogSource and its server.
func (m *Manager) RemoveCatalog(ctx context.Context, name string) {
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: name}
	m.Delete(ctx, &operatorsv1alpha1.CatalogSource{ObjectMeta: meta})
	m.Delete(ctx, &appsv1.Deployment{ObjectMeta: meta})
	m.Delete(ctx, &corev1.Service{ObjectMeta: meta})
}
