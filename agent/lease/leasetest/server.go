// Package leasetest has an API server with one Lease, for tests of agents.
package leasetest

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The Lease, the annotation with its successor, and the label of the operator's Leases.
const (
	Namespace = "shop"
	Name      = "orders"
	Next      = "apps.statefulsingleton.com/next"
	Label     = "apps.statefulsingleton.com/singleton"

	token = "of-the-pod"
	path  = "/apis/coordination.k8s.io/v1/namespaces/" + Namespace + "/leases"
)

// Fault is what happens to requests.
type Fault int

// The faults.
const (
	None      Fault = iota
	Silent          // requests are not answered, and watches report nothing
	Refused         // connections are closed
	Lost            // requests are executed, but their responses are lost
	Unwatched       // watches report nothing
)

// Server is an API server with one Lease. Watches end when the fault changes.
type Server struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	lease    *coordinationv1.Lease // nil if it is missing
	version  int
	fault    Fault
	changed  chan struct{} // closed with each change
	closed   chan struct{}
	requests []string
	// Before is called before a PATCH is executed.
	Before func(patch string)
}

// New starts a server whose Lease has a holder.
func New(t *testing.T, holder string) *Server {
	t.Helper()
	s := &Server{t: t, changed: make(chan struct{}), closed: make(chan struct{})}
	s.Update(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = &holder })
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.closed)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Update changes the Lease, and creates it if it is missing.
func (s *Server) Update(change func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name, Labels: map[string]string{Label: Name}},
	}
	if s.lease != nil {
		next = s.lease.DeepCopy()
	}
	change(next)
	s.store(next)
}

// Assign changes the holder, as an operator does after a takeover.
func (s *Server) Assign(holder string) {
	s.Update(func(l *coordinationv1.Lease) {
		epoch := int32(1)
		if l.Spec.LeaseTransitions != nil {
			epoch += *l.Spec.LeaseTransitions
		}
		l.Spec.HolderIdentity, l.Spec.LeaseTransitions = &holder, &epoch
	})
}

// Name names the successor.
func (s *Server) Name(successor string) {
	s.Update(func(l *coordinationv1.Lease) { metav1.SetMetaDataAnnotation(&l.ObjectMeta, Next, successor) })
}

// Delete deletes the Lease.
func (s *Server) Delete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(nil)
}

func (s *Server) store(l *coordinationv1.Lease) {
	s.version++
	if l != nil {
		l.ResourceVersion = strconv.Itoa(s.version)
	}
	s.lease = l
	s.wake()
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Fail sets the fault of all requests, and ends watches.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	s.wake()
}

func (s *Server) hasFault(f Fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault == f
}

// Lease returns a copy of the Lease.
func (s *Server) Lease() *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.DeepCopy()
}

// Holder returns the holder of the Lease.
func (s *Server) Holder() string { return *s.Lease().Spec.HolderIdentity }

// Requests returns all requests: the method, and the patch.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.requests...)
}

// WriteFolder writes the files that the operator mounts into a pod, with the identity name_uid.
func (s *Server) WriteFolder(dir, name, uid string) {
	s.t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for file, text := range map[string]string{
		"token": token, "ca.crt": string(ca), "namespace": Namespace, "pod-name": name, "pod-uid": uid,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Environment returns the variables with the address.
func (s *Server) Environment() []string {
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // an incomplete patch is refused
	watch := r.URL.Query().Get("watch") == "true"
	isOwn := r.URL.Path == path+"/"+Name
	if watch {
		isOwn = r.URL.Path == path && r.URL.Query().Get("fieldSelector") == "metadata.name="+Name
	}
	s.mu.Lock()
	fault, before := s.fault, s.Before
	s.requests = append(s.requests, r.Method+" "+string(body))
	s.mu.Unlock()
	switch {
	case fault == Refused:
		hangUp(w)
	case fault == Silent:
		s.block(r)
	case r.Header.Get("Authorization") != "Bearer "+token, !isOwn:
		respond(w, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, Name, nil))
	case watch:
		s.watch(w, r)
	case r.Method == http.MethodGet:
		s.mu.Lock()
		l := s.lease
		s.mu.Unlock()
		answer(w, l)
	case r.Method == http.MethodPatch:
		if before != nil {
			before(string(body))
		}
		l, err := s.patch(body)
		switch {
		case fault == Lost:
			hangUp(w)
		case s.hasFault(Silent): // since the request has arrived
			s.block(r)
		case err != nil:
			respond(w, err)
		default:
			answer(w, l)
		}
	}
}

func (s *Server) patch(body []byte) (*coordinationv1.Lease, *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := schema.GroupResource{Resource: "leases"}
	if s.lease == nil {
		return nil, apierrors.NewNotFound(resource, Name)
	}
	var bound metav1.PartialObjectMetadata
	old, err := json.Marshal(s.lease)
	if err == nil {
		err = json.Unmarshal(body, &bound)
	}
	if err == nil && bound.ResourceVersion != "" && bound.ResourceVersion != s.lease.ResourceVersion {
		return nil, apierrors.NewConflict(resource, Name, nil)
	}
	next := &coordinationv1.Lease{}
	if err == nil {
		old, err = jsonpatch.MergePatch(old, body)
	}
	if err == nil {
		err = json.Unmarshal(old, next)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.store(next)
	return next.DeepCopy(), nil
}

// watch reports the last change whenever there is one.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	reported := r.URL.Query().Get("resourceVersion")
	for {
		s.mu.Lock()
		changed, fault, version := s.changed, s.fault, strconv.Itoa(s.version)
		event := map[string]any{"type": "MODIFIED", "object": s.lease}
		if s.lease == nil {
			gone := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name, ResourceVersion: version}}
			gone.APIVersion, gone.Kind = "coordination.k8s.io/v1", "Lease"
			event = map[string]any{"type": "DELETED", "object": gone}
		}
		text, _ := json.Marshal(event) // of known types
		s.mu.Unlock()
		if fault == Silent || fault == Unwatched {
			s.block(r)
			return
		}
		if version != reported {
			_, _ = w.Write(append(text, '\n')) // the client may have gone
		}
		reported = version
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

// block waits until the client or the server ends.
func (s *Server) block(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}

func hangUp(w http.ResponseWriter) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		c.Close()
	}
}

func answer(w http.ResponseWriter, l *coordinationv1.Lease) {
	if l == nil {
		respond(w, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, Name))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(l) // the client may have gone
}

func respond(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may have gone
}
