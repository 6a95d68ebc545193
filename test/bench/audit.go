package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// request is what the API server's audit log says of one request.
type request struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
	Stage    string    `json:"stage"`
	Answer   struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// auditMark is a place in the audit log.
type auditMark int64

func (s *site) markAudit() (auditMark, error) { return markLog(s.cluster.AuditLog()) }

// writesSince is every write that the API server was asked for since the mark,
// refused ones too.
func (s *site) writesSince(mark auditMark) ([]request, error) {
	return readSince(s.cluster.AuditLog(), mark, request.isWrite)
}

// operatorsSince are those of the operator, events too.
func (s *site) operatorsSince(mark auditMark) ([]request, error) {
	writes, err := s.writesSince(mark)
	changes, events := byOperator(writes)
	return append(changes, events...), err
}

func markLog(path string) (auditMark, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return auditMark(info.Size()), nil
}

func readSince(path string, mark auditMark, wanted func(request) bool) ([]request, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(int64(mark), io.SeekStart); err != nil {
		return nil, err
	}
	return readAudit(file, wanted)
}

// readAudit reads the requests that were answered and are wanted.
func readAudit(log io.Reader, wanted func(request) bool) ([]request, error) {
	var found []request
	lines := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return found, nil // what is left is a line that is being written
		}
		if err != nil {
			return nil, err
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if r.Stage == "ResponseComplete" && wanted(r) {
			found = append(found, r)
		}
	}
}

// isWrite tells whether the request changes what etcd holds. Questions about
// tokens and permissions are asked by POST and change nothing.
func (r request) isWrite() bool {
	if !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) {
		return false
	}
	return !slices.Contains([]string{"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}, r.Object.Resource)
}

// isExec tells whether it runs a command in a container.
func (r request) isExec() bool { return r.Object.Subresource == "exec" }

func (r request) isEvent() bool { return r.Object.Resource == "events" }

func (r request) String() string {
	resource := r.Object.Resource
	if r.Object.Subresource != "" {
		resource += "/" + r.Object.Subresource
	}
	return r.Verb + " " + resource
}

// byOperator are the operator's writes; events are counted apart.
func byOperator(writes []request) (changes, events []request) {
	for _, w := range writes {
		switch {
		case w.User.Username != operatorUser:
		case w.isEvent():
			events = append(events, w)
		default:
			changes = append(changes, w)
		}
	}
	return changes, events
}

// tallied says how often each kind of write was made.
func tallied(writes []request) string {
	counts := map[string]int{}
	for _, w := range writes {
		what := w.String()
		if w.Answer.Code >= 300 {
			what += fmt.Sprintf(" (answered %d)", w.Answer.Code)
		}
		counts[what]++
	}
	return commaList(counts)
}
