package main

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// TestReadAudit tests which events of an audit log are read.
func TestReadAudit(t *testing.T) {
	r, p := holder(t)
	good := string(r.audit)
	lines := strings.SplitAfter(good, "\n")
	renewal := lines[2]
	replace := func(old, new string) string {
		if !strings.Contains(renewal, old) {
			t.Fatalf("%s has no %s", renewal, old)
		}
		return strings.Replace(renewal, old, new, 1)
	}
	before, bodies, _ := strings.Cut(renewal, `,"requestObject"`)
	_, after, _ := strings.Cut(bodies, `,"requestReceivedTimestamp"`)
	bodiless := before + `,"requestReceivedTimestamp"` + after
	for _, row := range []struct {
		name             string
		log              string
		writes, bodiless int
		fails            bool
	}{
		{"all", good, 3, 0, false},
		{"an incomplete last line", good + strings.TrimSuffix(renewal, "\n"), 3, 0, false},
		{"a refused request", replace(`"code":200`, `"code":409`), 0, 0, false},
		{"an early stage", replace(`"ResponseComplete"`, `"ResponseStarted"`), 0, 0, false},
		{"a read", replace(`"verb":"patch"`, `"verb":"get"`), 0, 0, false},
		{"a dry run", replace(`"requestURI":""`, `"requestURI":"/a?dryRun=All"`), 0, 0, false},
		{"a Lease of another kind", strings.ReplaceAll(renewal, mailer, "controller"), 0, 0, false},
		{"a Lease of another client", replace(`"labels":{"apps.statefulsingleton.com/singleton":"mailer"},`, ""), 0, 0, false},
		{"another resource", replace(`"resource":"leases"`, `"resource":"roles"`), 0, 0, false},
		{"an event without bodies", bodiless, 0, 1, false},
		{"a deletion", replace(`"verb":"patch"`, `"verb":"delete"`), 0, 0, false},
		{"no event", "text\n", 0, 0, true},
		{"a damaged event", replace(`"user":`, `"user":,`), 0, 0, true},
		{"a version that is no number", strings.ReplaceAll(renewal, `"resourceVersion":"`, `"resourceVersion":"x`), 0, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			read := &trace{homes: map[string]string{}}
			err := read.readAudit("audit.log", strings.NewReader(row.log))
			if (err != nil) != row.fails || len(read.writes) != row.writes || read.bodiless != row.bodiless {
				t.Errorf("%d writes, %d without bodies, error %v", len(read.writes), read.bodiless, err)
			}
		})
	}
	read := &trace{homes: map[string]string{}}
	if err := read.readAudit("audit.log", strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	w := read.writes[2]
	if w.String() != "audit.log:3" || w.lease != "app/"+mailer || w.by.pod != p.identity() || w.bound != read.writes[1].after.version || w.created || w.after.duration != recordedSeconds*time.Second {
		t.Errorf("the renewal is %+v", w)
	}
	if first := read.writes[0]; !first.created || first.by.account != recordedOperator || first.bound == 0 && first.after.version == 0 {
		t.Errorf("the creation is %+v", first)
	}
}

// TestStates tests that each field of a Lease is in the state, and that versions and managed fields are not compared.
func TestStates(t *testing.T) {
	r, _ := holder(t)
	of := func(change func(l *coordinationv1.Lease)) state {
		l := r.leases[mailer].DeepCopy()
		change(l)
		s, err := stateOf(l)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := of(func(*coordinationv1.Lease) {})
	if of(func(l *coordinationv1.Lease) { l.Generation = 7 }) != before {
		t.Error("the generation is compared")
	}
	for name, change := range map[string]func(l *coordinationv1.Lease){
		"holder":     func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil },
		"epoch":      func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = nil },
		"duration":   func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil },
		"renewed":    func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil },
		"acquired":   func(l *coordinationv1.Lease) { l.Spec.AcquireTime = nil },
		"strategy":   func(l *coordinationv1.Lease) { s := coordinationv1.OldestEmulationVersion; l.Spec.Strategy = &s },
		"label":      func(l *coordinationv1.Lease) { l.Labels = map[string]string{"a": "b"} },
		"annotation": func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"a": "b"} },
		"owner":      func(l *coordinationv1.Lease) { l.OwnerReferences = nil },
		"finalizer":  func(l *coordinationv1.Lease) { l.Finalizers = []string{"a"} },
	} {
		if of(change) == before {
			t.Errorf("a change of the %s is not seen", name)
		}
	}
}

// TestEndings tests which events prove that a pod has ended.
func TestEndings(t *testing.T) {
	kubelet, other := authenticationv1.UserInfo{Username: recordedKubelet}, authenticationv1.UserInfo{Username: "admin"}
	status := func(status map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"uid": "1"}, "status": status}
	}
	condition := func(kind, reason string) map[string]any {
		return status(map[string]any{"conditions": []map[string]any{{"type": kind, "reason": reason}}})
	}
	for _, row := range []struct {
		name    string
		verb    string
		user    authenticationv1.UserInfo
		request any
		want    string
	}{
		{"the kubelet reports the last phase", "patch", kubelet, status(map[string]any{"phase": "Failed"}), "app/a_1"},
		{"the kubelet reports that it runs", "patch", kubelet, status(map[string]any{"phase": "Running"}), ""},
		{"the kubelet reports the reason", "patch", kubelet, condition("ContainersReady", "PodCompleted"), "app/a_1"},
		{"another condition has that reason", "patch", kubelet, condition("Ready", "PodCompleted"), ""},
		{"another client reports the last phase", "patch", other, status(map[string]any{"phase": "Failed"}), ""},
		{"the kubelet deletes it", "delete", kubelet, map[string]any{"preconditions": map[string]any{"uid": "1"}}, "app/a_1"},
		{"the kubelet deletes it, and the body is not logged", "delete", kubelet, nil, "app/a"},
		{"another client deletes it", "delete", other, nil, ""},
		{"a JSON patch", "patch", kubelet, []map[string]any{{"op": "add"}}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder(t, 1)
			r.event(row.verb, "pods", "app", "a", row.user, row.request, nil)
			read := &trace{homes: map[string]string{}}
			if err := read.readAudit("audit.log", strings.NewReader(string(r.audit))); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, e := range read.endings {
				got += e.pod
			}
			if got != row.want {
				t.Errorf("the pods that have ended are %q, want %q", got, row.want)
			}
		})
	}
	r := newRecorder(t, 1)
	r.event("patch", "nodes", "", "n1", other, map[string]any{"spec": map[string]any{"taints": []map[string]any{{"key": "node.kubernetes.io/unreachable"}}}}, nil)
	r.event("patch", "nodes", "", "n2", other, map[string]any{"spec": map[string]any{"taints": []map[string]any{{"key": "node.kubernetes.io/out-of-service"}}}}, nil)
	r.event("delete", "nodes", "", "n3", other, nil, nil)
	read := &trace{homes: map[string]string{}}
	if err := read.readAudit("audit.log", strings.NewReader(string(r.audit))); err != nil {
		t.Fatal(err)
	}
	if len(read.endings) != 2 || read.endings[0].node != "n2" || read.endings[1].node != "n3" {
		t.Errorf("the nodes that are off are %+v", read.endings)
	}
}
