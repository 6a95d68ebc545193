package leasewatch

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// manager is a manager without runnables.
type manager struct {
	ctrl.Manager
	scheme *runtime.Scheme
	host   string
}

func (m manager) GetScheme() *runtime.Scheme { return m.scheme }
func (m manager) GetConfig() *rest.Config {
	return &rest.Config{Host: m.host, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
}
func (m manager) GetRESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{coordinationv1.SchemeGroupVersion})
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	return mapper
}

// serveLeases starts an API server with one Lease. It sends when a watch begins, and when it ends.
func serveLeases(t *testing.T) (host string, began, ended chan string) {
	began, ended = make(chan string, 9), make(chan string, 9)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(apierrors.NewInvalid(schema.GroupKind{}, "", nil).ErrStatus)
		case query.Get("watch") != "":
			w.(http.Flusher).Flush()
			began <- r.URL.Path
			<-r.Context().Done()
			ended <- r.URL.Path
		default:
			_ = json.NewEncoder(w).Encode(coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []coordinationv1.Lease{*leaseNamed("db-0.member", "1", "a")}})
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, began, ended
}

func TestOpener(t *testing.T) {
	const path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	host, began, ended := serveLeases(t)
	root, stop := context.WithCancel(t.Context())
	defer stop()
	open := OpenerOf(manager{scheme: scheme, host: host}, root)
	seen := make(chan string, 9)
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: func(lease any) { seen <- lease.(*coordinationv1.Lease).Name }}
	options := cache.Options{DefaultNamespaces: map[string]cache.Config{"ns": {}}}
	for _, stops := range []bool{false, true} {
		end, err := open(t.Context(), options, handler, &coordinationv1.Lease{})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != "db-0.member" {
			t.Errorf("saw %s", got)
		}
		if got := <-began; got != path {
			t.Errorf("watches %s, want %s", got, path)
		}
		if stops {
			stop() // it ends all watches
		} else {
			end()
		}
		<-ended
		end()
	}
	if _, err := open(t.Context(), options, handler, &corev1.Pod{}); err == nil {
		t.Error("a kind without a type is watched")
	}
}
