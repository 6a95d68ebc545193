package freeze

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Write is a request of an operator that may change something.
type Write struct {
	// At is the time of its arrival at the proxy.
	At time.Time
	// Method is the HTTP method, or EXEC for a command in a pod.
	Method string
	// Namespace, Resource, Name and Subresource are parsed from the path. Some are empty.
	Namespace, Resource, Name, Subresource string
	// Command is the command of an EXEC.
	Command []string
	// Status is the HTTP status of the response, or 0 before the response.
	Status int
	// Held is true for the write at which the process was frozen.
	Held bool
}

// Exec is the Method of a command in a pod.
const Exec = "EXEC"

func (w Write) String() string {
	words := slices.DeleteFunc([]string{w.Method, w.Resource, w.Name, w.Subresource}, func(word string) bool { return word == "" })
	return fmt.Sprintf("%s: %d", strings.Join(append(words, w.Command...), " "), w.Status)
}

// Lease reports whether the write is for the lease of an election.
func (w Write) Lease() bool { return w.Resource == "leases" }

// Created reports whether the write created an object.
func (w Write) Created() bool {
	return w.Method == http.MethodPost && w.Status == http.StatusCreated && w.Subresource == ""
}

// Changed reports whether the write created or deleted an object, or started a command. A patch is not
// counted, because it may change nothing.
func (w Write) Changed() bool {
	switch w.Method {
	case Exec:
		return w.Status == http.StatusSwitchingProtocols
	case http.MethodDelete:
		return w.Status == http.StatusOK || w.Status == http.StatusAccepted
	}
	return w.Created()
}

// notWritten are resources that are created by POST without being stored, and events, which are only
// informative.
var notWritten = []string{"events", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}

// paths parses /api/v1/… and /apis/GROUP/VERSION/… as an API server does.
var paths = request.RequestInfoFactory{
	APIPrefixes:          map[string]sets.Empty{"api": {}, "apis": {}},
	GrouplessAPIPrefixes: map[string]sets.Empty{"api": {}},
}

// parse returns the Write of a request, and whether the request may change something.
func parse(r *http.Request) (Write, bool) {
	w := Write{At: time.Now(), Method: r.Method}
	about, err := paths.NewRequestInfo(r)
	if err == nil {
		w.Namespace, w.Resource, w.Name, w.Subresource = about.Namespace, about.Resource, about.Name, about.Subresource
	}
	query := r.URL.Query()
	if w.Subresource == "exec" {
		// A WebSocket is opened by GET, but an exec is a write.
		w.Method, w.Command = Exec, query["command"]
		return w, true
	}
	changes := slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method)
	return w, changes && !slices.Contains(notWritten, w.Resource) && !query.Has("dryRun")
}
