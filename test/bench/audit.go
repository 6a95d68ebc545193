package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/stateful-operator/stateful-operator/test/auditlog"
)

// request is a completed request in the API server's audit log.
type request struct{ *auditv1.Event }

func (r *request) received() time.Time { return r.RequestReceivedTimestamp.Time }

func (r *request) answered() time.Time { return r.StageTimestamp.Time }

func (r *request) refused() bool { return r.ResponseStatus != nil && r.ResponseStatus.Code >= 300 }

func (r *request) what() string { return r.Verb + " " + auditlog.Resource(r.Event) }

// isWrite reports whether the request changes data in etcd. Token and access reviews are POST requests
// that change nothing.
func (r *request) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!slices.Contains([]string{"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}, r.ObjectRef.Resource)
}

// isOperators reports whether the request is a write by the operator. isChange excludes events.
func (r *request) isOperators() bool { return r.isWrite() && r.User.Username == operatorUser }

func (r *request) isChange() bool { return r.isOperators() && r.ObjectRef.Resource != "events" }

// auditMark is an offset in the audit log.
type auditMark int64

func (s *site) markAudit() auditMark { return auditMark(must(os.Stat(s.cluster.AuditLog())).Size()) }

// since returns the wanted requests that the API server received after the mark, in the order in which
// they arrived. Rejected requests are included.
func (s *site) since(mark auditMark, wanted func(*request) bool) []*request {
	file := must(os.Open(s.cluster.AuditLog()))
	defer file.Close()
	must(file.Seek(int64(mark), io.SeekStart))
	return readAudit(file, wanted)
}

func readAudit(log io.Reader, wanted func(*request) bool) (found []*request) {
	check(auditlog.Read(log, string(auditv1.StageResponseComplete), func(e *auditv1.Event) {
		if r := (&request{e}); r.Stage == auditv1.StageResponseComplete && wanted(r) {
			found = append(found, r)
		}
	}))
	slices.SortStableFunc(found, func(a, b *request) int { return a.received().Compare(b.received()) })
	return found
}

// tallied returns the number of writes of each kind.
func tallied(writes []*request) string {
	counts := map[string]int{}
	for _, w := range writes {
		what := w.what()
		if w.refused() {
			what += fmt.Sprintf(" (returned %d)", w.ResponseStatus.Code)
		}
		counts[what]++
	}
	parts := make([]string, 0, len(counts))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
	}
	return strings.Join(parts, ", ")
}

// delays returns the time between each change of a set and the first answer to it. change and answer
// are kinds of requests. An answer is for a pod whose name has the set's name before afterSet.
func delays(writes []*request, namespace, change, answer, afterSet string, want int) (found []time.Duration) {
	changed := map[string]time.Time{} // by name of the set
	for _, w := range writes {
		if w.ObjectRef.Namespace != namespace {
			continue
		}
		switch w.what() {
		case change:
			changed[w.ObjectRef.Name] = w.received()
		case answer:
			set := w.ObjectRef.Name[:max(0, strings.LastIndex(w.ObjectRef.Name, afterSet))]
			if at, waiting := changed[set]; waiting {
				found = append(found, w.received().Sub(at))
				delete(changed, set)
			}
		}
	}
	if len(found) != want {
		fail("%d of %d times %q was followed by %q", len(found), want, change, answer)
	}
	return found
}

// covered returns for how long at least one of the requests was in flight between two times.
func covered(requests []*request, from, to time.Time) (sum time.Duration) {
	slices.SortFunc(requests, func(a, b *request) int { return a.received().Compare(b.received()) })
	for _, q := range requests {
		if q.received().After(from) {
			from = q.received()
		}
		end := q.answered()
		if end.After(to) {
			end = to
		}
		if end.After(from) {
			sum += end.Sub(from)
			from = end
		}
	}
	return sum
}
