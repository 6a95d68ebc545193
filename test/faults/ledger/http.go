package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// sumAnswer is the digest of a log up to an index, if it goes that far.
type sumAnswer struct {
	Has bool          `json:"has"`
	Sum record.Digest `json:"sum"`
}

const mostBody = 1 << 20

// api is what clients and other members reach.
func (n *node) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /append", func(w http.ResponseWriter, r *http.Request) {
		var asked request
		if !hear(w, r, &asked) {
			return
		}
		if asked.Client == "" || asked.Request == "" {
			tell(w, http.StatusBadRequest, answer{Error: "client and request are needed", Effect: "none"})
			return
		}
		a, err := n.append(r.Context(), asked)
		reply(w, a, err)
	})
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
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, _ *http.Request) {
		n.mu.Lock()
		entries := n.log.entries[:len(n.log.entries):len(n.log.entries)]
		n.mu.Unlock()
		for _, e := range entries {
			if _, err := w.Write(record.Marshal(e)); err != nil {
				return
			}
		}
	})
	n.memberAPI(mux)
	return mux
}

// memberAPI is what followers ask of their primary.
func (n *node) memberAPI(mux *http.ServeMux) {
	mux.HandleFunc("POST /join", func(w http.ResponseWriter, r *http.Request) {
		var had promise
		if !hear(w, r, &had) {
			return
		}
		joined, last, err := n.welcome(had)
		if err != nil {
			reply(w, answer{}, err)
			return
		}
		tell(w, http.StatusOK, invitation{joined, last})
	})
	mux.HandleFunc("GET /sum", func(w http.ResponseWriter, r *http.Request) {
		index, err := strconv.ParseUint(r.FormValue("index"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		sum, has := n.sumAt(index)
		tell(w, http.StatusOK, sumAnswer{has, sum})
	})
	mux.HandleFunc("POST /pull", func(w http.ResponseWriter, r *http.Request) {
		var p pull
		if !hear(w, r, &p) {
			return
		}
		entries, err := n.give(r.Context(), p)
		if err != nil {
			reply(w, answer{}, err)
			return
		}
		tell(w, http.StatusOK, entries)
	})
}

func hear(w http.ResponseWriter, r *http.Request, question any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody)).Decode(question)
	if err != nil {
		tell(w, http.StatusBadRequest, answer{Error: err.Error(), Effect: "none"})
	}
	return err == nil
}

func tell(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(record.Marshal(what)) // the client knows if it got it
}

func reply(w http.ResponseWriter, a answer, err error) {
	status := http.StatusOK
	if err != nil {
		a.Error = err.Error()
		status = http.StatusServiceUnavailable
	}
	if errors.Is(err, errNotPrimary) {
		status = http.StatusMisdirectedRequest
	}
	tell(w, status, a)
}
