package apiserver

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Table returns the columns that `kubectl get -o wide` prints for an object, and the cells by column
// name. A blank cell is nil.
func (s Server) Table(ctx context.Context, resource string, obj client.Object) (columns []string, cells map[string]any) {
	GinkgoHelper()
	kind, err := s.User.GroupVersionKindFor(obj)
	Expect(err).NotTo(HaveOccurred())
	clients, err := kubernetes.NewForConfig(s.Config)
	Expect(err).NotTo(HaveOccurred())
	text, err := clients.RESTClient().Get().AbsPath("/apis", kind.Group, kind.Version, "namespaces", obj.GetNamespace(), resource, obj.GetName()).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	Expect(err).NotTo(HaveOccurred())
	var table metav1.Table
	Expect(json.Unmarshal(text, &table)).To(Succeed())
	Expect(table.Rows).To(HaveLen(1))
	cells = map[string]any{}
	for i, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
		cells[column.Name] = table.Rows[0].Cells[i]
	}
	return columns, cells
}
