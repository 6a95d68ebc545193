package plans

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

func TestWrite(t *testing.T) {
	rollout := &plugin.Plan{Kind: "ReplicatedStatefulSet", Namespace: "default", Name: "orders",
		Changes: []plugin.Field{{Path: "spec.pod.containers[db].image", From: `"postgres:17.2"`, To: `"postgres:17.4"`}},
		Steps: []plugin.Step{
			{Batch: 1, Action: plugin.RecreatePod, Name: "rss-orders-2", Role: "secondary", EvictionsBlocked: true, Changes: []plugin.Field{{Path: "db.image", From: "postgres:17.2", To: "postgres:17.4"}}},
			{Batch: 2, Action: plugin.Handover, Name: "rss-orders-1", To: "rss-orders-2", Role: "primary"},
			{Batch: 2, Action: plugin.RecreatePod, Name: "rss-orders-1"},
			{Batch: 3, Action: plugin.Handover, To: "rss-orders-0", Role: "primary"},
			{Batch: 4, Action: plugin.Handover, Name: "rss-orders-0", Role: "primary"},
			{Batch: 10, Action: plugin.DeleteClaim, Name: "data-rss-orders-3"},
		},
		Summary: plugin.Summary{PodsRecreated: 2, Handovers: 3, ClaimsDeleted: 1, ClaimsKept: 3, Members: 3, MinReady: 2},
		State:   plugin.Stopped, Reason: "OnDelete", Message: "delete pod rss-orders-0",
		Blocked: []string{"pod rss-orders-0 is not evicted: budget b allows no disruption"}, Unknown: []string{"\x1b[2Jsecrets"}}
	for _, row := range []struct {
		name string
		plan *plugin.Plan
		want string
	}{
		{"a rollout", rollout, `
ReplicatedStatefulSet default/orders
  spec.pod.containers[db].image: postgres:17.2 -> postgres:17.4
   1  recreate pod rss-orders-2 (secondary)
   2  hand over from rss-orders-1 to rss-orders-2 (primary)
      recreate pod rss-orders-1
   3  rss-orders-0 becomes primary
   4  rss-orders-0 stops being primary, and no pod replaces it
  10  delete claim data-rss-orders-3 with its data
  2 pods recreated, 3 handovers, 1 claim deleted, 3 claims kept; at least 2 of 3 pods Ready at any time; evictions blocked during step 1
  then it stops and requires manual intervention: OnDelete: delete pod rss-orders-0
  blocked: pod rss-orders-0 is not evicted: budget b allows no disruption
  unknown:  [2Jsecrets
`},
		{"a new object that waits", &plugin.Plan{Kind: "StatefulCluster", Namespace: "a", Name: "b", New: true,
			Steps:   []plugin.Step{{Batch: 1, Action: plugin.CreatePod, Name: "b-new1"}, {Batch: 1, Action: plugin.CreateClaim, Name: "data-b-new1"}},
			Summary: plugin.Summary{PodsCreated: 1, ClaimsCreated: 1}, State: plugin.Waiting, Reason: "Starting", Message: "no node"}, `
StatefulCluster a/b (new)
  1  create pod b-new1
     create claim data-b-new1
  1 pod created, 1 claim created
  then it waits: Starting: no node
`},
		{"a problem that exists already", &plugin.Plan{Kind: "StatefulCluster", Namespace: "a", Name: "b", State: plugin.Stopped, Unchanged: true,
			Reason: "CanaryFailed", Message: "version 3"}, `
StatefulCluster a/b
  no pod restarts
  still, as before the change: CanaryFailed: version 3
`},
		{"nothing but a change", &plugin.Plan{Kind: "StatefulCluster", Namespace: "a", Name: "b", State: plugin.Complete,
			Changes:    []plugin.Field{{Path: "spec.minReadySeconds", To: `"5\n  1  delete pod"`}, {Path: "metadata.labels.x", From: `"` + strings.Repeat("é", 70) + `"`}},
			InProgress: []plugin.Step{{Batch: 1, Action: plugin.UpdatePod, Name: "b-x"}}, Summary: plugin.Summary{Members: 1, MinReady: 1}}, `
StatefulCluster a/b
  spec.minReadySeconds: set to 5\n  1  delete pod
  metadata.labels.x: removed, was ` + strings.Repeat("é", 57) + `...
  already in progress, without this change:
  1  update pod b-x in place
  then:
  no pod restarts; at least 1 of 1 pod Ready at any time
`},
	} {
		var out bytes.Buffer
		if err := Write(&out, row.plan); err != nil || out.String() != row.want[1:] {
			t.Errorf("%s: %v\n%s\nwant:\n%s", row.name, err, out.String(), row.want[1:])
		}
	}
}

func TestBlockedDuring(t *testing.T) {
	for _, row := range []struct {
		blocked []int // batches
		want    string
	}{
		{nil, ""},
		{[]int{2}, "step 2"},
		{[]int{1, 1}, "step 1"},
		{[]int{1, 2, 3}, "steps 1-3"},
		{[]int{1, 3, 4, 6}, "steps 1, 3-4, 6"},
	} {
		var steps []plugin.Step
		for _, batch := range row.blocked {
			steps = append(steps, plugin.Step{Batch: batch, EvictionsBlocked: true}, plugin.Step{Batch: batch})
		}
		if got := blockedDuring(steps); got != row.want {
			t.Errorf("%v: %q, want %q", row.blocked, got, row.want)
		}
	}
}

func TestHasEffect(t *testing.T) {
	for _, row := range []struct {
		plan plugin.Plan
		want bool
	}{
		{plugin.Plan{}, false},
		{plugin.Plan{InProgress: []plugin.Step{{}}}, false},
		{plugin.Plan{Steps: []plugin.Step{{}}}, true},
		{plugin.Plan{Changes: []plugin.Field{{}}}, true},
		{plugin.Plan{New: true}, true},
		{plugin.Plan{Deleted: true}, true},
		{plugin.Plan{Blocked: []string{"a"}}, true},
	} {
		if got := HasEffect(&row.plan); got != row.want {
			t.Errorf("%+v: %t, want %t", row.plan, got, row.want)
		}
	}
}
