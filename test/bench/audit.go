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

// request is one that was answered, as the API server's audit log tells of it.
type request struct{ *auditv1.Event }

func (r *request) received() time.Time { return r.RequestReceivedTimestamp.Time }

func (r *request) answered() time.Time { return r.StageTimestamp.Time }

func (r *request) refused() bool { return r.ResponseStatus != nil && r.ResponseStatus.Code >= 300 }

func (r *request) what() string { return r.Verb + " " + auditlog.Resource(r.Event) }

// isWrite reports whether the request changes what etcd holds. Questions about
// tokens and permissions are asked by POST and change nothing.
func (r *request) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!slices.Contains([]string{"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}, r.ObjectRef.Resource)
}

// isOperators reports whether it is a write of the operator, isChange whether of
// anything but an event.
func (r *request) isOperators() bool { return r.isWrite() && r.User.Username == operatorUser }

func (r *request) isChange() bool { return r.isOperators() && r.ObjectRef.Resource != "events" }

// auditMark is a place in the audit log.
type auditMark int64

func (s *site) markAudit() auditMark { return auditMark(must(os.Stat(s.cluster.AuditLog())).Size()) }

// since is every wanted request that the API server was asked for since the mark,
// refused ones too, in the order in which they arrived.
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

// tallied says how often each kind of write was made.
func tallied(writes []*request) string {
	counts := map[string]int{}
	for _, w := range writes {
		what := w.what()
		if w.refused() {
			what += fmt.Sprintf(" (answered %d)", w.ResponseStatus.Code)
		}
		counts[what]++
	}
	parts := make([]string, 0, len(counts))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
	}
	return strings.Join(parts, ", ")
}

// delays pairs each change of a set, which is such a request, with the first answer
// to it, which is one for a pod of that set, and gives the times between them.
func delays(writes []*request, namespace, change, answer, afterSet string, want int) (found []time.Duration) {
	changed := map[string]time.Time{} // by the name of the set
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

// covered is for how long between two instants at least one of the requests was on
// its way.
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
