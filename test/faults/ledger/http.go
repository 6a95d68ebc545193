package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// sumAnswer is the digest of a log up to an index, if the log has this index.
type sumAnswer struct {
	Has bool          `json:"has"`
	Sum record.Digest `json:"sum"`
}

const maxBody = 1 << 20

// api returns the handler for clients and other members.
func (n *node) api() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /append", handler(n.append))
	mux.HandleFunc("GET /read", func(w http.ResponseWriter, r *http.Request) {
		a, err := n.read(r.Context())
		reply(w, a, err)
	})
	mux.HandleFunc("GET /role", func(w http.ResponseWriter, _ *http.Request) {
		v := n.view()
		status := http.StatusOK
		if v.Role == none {
			status = http.StatusServiceUnavailable
		}
		tell(w, status, v)
	})
	// Requests of followers to their primary.
	mux.Handle("POST /join", handler(n.welcome))
	mux.Handle("POST /pull", handler(n.give))
	mux.Handle("POST /forget", handler(n.forget))
	mux.Handle("POST /sum", handler(n.sumAt))
	return mux
}

// handler returns a handler for requests in JSON.
func handler[Q, A any](do func(context.Context, Q) (A, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question Q
		if hear(w, r, &question) {
			a, err := do(r.Context(), question)
			reply(w, a, err)
		}
	})
}

func hear(w http.ResponseWriter, r *http.Request, question any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(question)
	if err != nil {
		tell(w, http.StatusBadRequest, answer{Error: err.Error(), Effect: "none"})
	}
	return err == nil
}

func tell(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(record.Marshal(what)) // the client detects a missing response
}

func reply(w http.ResponseWriter, what any, err error) {
	if err == nil {
		tell(w, http.StatusOK, what)
		return
	}
	refusal, _ := what.(answer) // the response may include an effect
	refusal.Error = err.Error()
	status := http.StatusServiceUnavailable
	if errors.Is(err, errNotPrimary) {
		status = http.StatusMisdirectedRequest
	}
	tell(w, status, refusal)
}
