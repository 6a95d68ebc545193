package freeze

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
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
	words := []string{w.Method, w.Resource}
	for _, word := range []string{w.Name, w.Subresource} {
		if word != "" {
			words = append(words, word)
		}
	}
	words = append(words, w.Command...)
	return fmt.Sprintf("%s: %d", strings.Join(words, " "), w.Status)
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

// parse reports whether a request may change something, and what.
func parse(r *http.Request) (Write, bool) {
	w := Write{At: time.Now(), Method: r.Method}
	w.read(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	query := r.URL.Query()
	if w.Subresource == "exec" {
		// A websocket begins with a GET, and is no less of a write.
		w.Method, w.Command = Exec, query["command"]
		return w, true
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return w, false
	}
	return w, !slices.Contains(notWritten, w.Resource) && !query.Has("dryRun")
}

// read takes apart /api/v1/… and /apis/GROUP/VERSION/….
func (w *Write) read(path []string) {
	switch {
	case len(path) > 2 && path[0] == "api":
		path = path[2:]
	case len(path) > 3 && path[0] == "apis":
		path = path[3:]
	default:
		return
	}
	if path[0] == "namespaces" && len(path) > 2 {
		w.Namespace, path = path[1], path[2:]
	}
	for i, field := range []*string{&w.Resource, &w.Name, &w.Subresource} {
		if i < len(path) {
			*field = path[i]
		}
	}
}
