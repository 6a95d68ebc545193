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
	// At is when it reached the proxy.
	At time.Time
	// Method is that of HTTP; EXEC stands for a command in a pod.
	Method string
	// Namespace, Resource, Name and Subresource are what the path says; some are
	// empty.
	Namespace, Resource, Name, Subresource string
	// Command is what an EXEC runs.
	Command []string
	// Status is the API server's answer, 0 as long as there is none.
	Status int
	// Held is true of the one that the process was frozen at.
	Held bool
}

// Exec is the Method of a command in a pod.
const Exec = "EXEC"

func (w Write) String() string {
	words := slices.DeleteFunc([]string{w.Method, w.Resource, w.Name, w.Subresource}, func(word string) bool { return word == "" })
	return fmt.Sprintf("%s: %d", strings.Join(append(words, w.Command...), " "), w.Status)
}

// Lease reports whether it is about the lease of an election.
func (w Write) Lease() bool { return w.Resource == "leases" }

// Created reports whether it made an object.
func (w Write) Created() bool {
	return w.Method == http.MethodPost && w.Status == http.StatusCreated && w.Subresource == ""
}

// Changed reports whether it made or deleted an object, or began a command. A patch says
// what it wants, and changes nothing that is so.
func (w Write) Changed() bool {
	switch w.Method {
	case Exec:
		return w.Status == http.StatusSwitchingProtocols
	case http.MethodDelete:
		return w.Status == http.StatusOK || w.Status == http.StatusAccepted
	}
	return w.Created()
}

// notWritten are what is posted and leaves nothing behind, and events, which are for
// people only.
var notWritten = []string{"events", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}

// paths takes apart /api/v1/… and /apis/GROUP/VERSION/… as an API server does.
var paths = request.RequestInfoFactory{
	APIPrefixes:          map[string]sets.Empty{"api": {}, "apis": {}},
	GrouplessAPIPrefixes: map[string]sets.Empty{"api": {}},
}

// parse reports whether a request may change something, and what.
func parse(r *http.Request) (Write, bool) {
	w := Write{At: time.Now(), Method: r.Method}
	about, err := paths.NewRequestInfo(r)
	if err == nil {
		w.Namespace, w.Resource, w.Name, w.Subresource = about.Namespace, about.Resource, about.Name, about.Subresource
	}
	query := r.URL.Query()
	if w.Subresource == "exec" {
		// A websocket begins with a GET, and is no less of a write.
		w.Method, w.Command = Exec, query["command"]
		return w, true
	}
	changes := slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method)
	return w, changes && !slices.Contains(notWritten, w.Resource) && !query.Has("dryRun")
}
