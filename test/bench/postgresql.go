package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/manifest"
	postgres "github.com/stateful-operator/stateful-operator/test/run/postgres/server"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	"github.com/stateful-operator/stateful-operator/test/run/writer"
)

const (
	ordersNamespace = "orders"
	ordersSample    = "config/samples/applications/postgresql.yaml"
	writeInterval   = "10ms"
)

// orders is the sample of PostgreSQL, with a client that writes to Service orders-primary.
type orders struct{ *replicated }

// measurePostgreSQL measures how long a client cannot write when a primary is replaced.
func measurePostgreSQL(ctx context.Context, s *site) {
	o := s.newOrders(ctx)
	for _, kind := range []struct {
		title string
		want  bounds
		end   func(ctx context.Context, primary *corev1.Pod)
	}{
		{"kill -9 of the primary", bounds{p50: atMost(2)}, func(ctx context.Context, primary *corev1.Pod) {
			must(o.kubectl(ctx, ordersNamespace, "exec", primary.Name, "--", "/bin/killall", "-9", "postgres"))
		}},
		{"switchover", bounds{p50: atMost(1.5)}, func(ctx context.Context, _ *corev1.Pod) {
			o.requestSwitchover(ctx, o.set.Status.Members.Secondary[0])
		}},
		{"drain of the primary's node", bounds{p50: atMost(2)}, func(ctx context.Context, primary *corev1.Pod) {
			must(o.kubectl(ctx, ordersNamespace, "drain", primary.Spec.NodeName, "--ignore-daemonsets", "--pod-selector=app="+o.set.Name, "--timeout=2m"))
			must(o.kubectl(ctx, ordersNamespace, "uncordon", primary.Spec.NodeName))
		}},
	} {
		title := kind.title + ", time without a write"
		step("%s, %d times", title, s.size.failovers)
		var took []time.Duration
		for range s.size.failovers {
			within(title, func() { took = append(took, o.gap(ctx, kind.end)) })
		}
		s.spread3(title, took, kind.want, fmt.Sprintf("%d times", len(took)))
	}
}

func (s *site) newOrders(ctx context.Context) *orders {
	tar := filepath.Join(s.folder, "postgresql.tar")
	server := must(postgres.Image.Write(ctx, tar))
	check(s.cluster.LoadImage(ctx, tar))
	writes := s.load(ctx, program.Program{Package: "./test/run/postgres/pgclient", Ref: "localhost/pgclient", User: "65532:65532", Tar: filepath.Join(s.folder, "pgclient.tar")})
	s.makeNamespace(ctx, ordersNamespace)
	o := &orders{&replicated{site: s}}
	text := must(os.ReadFile(ordersSample))
	passwords := must(manifest.Read[corev1.Secret](text))[0]
	o.set = new(must(manifest.Read[v1alpha1.ReplicatedStatefulSet](text))[1])
	passwords.Namespace, o.set.Namespace = ordersNamespace, ordersNamespace
	o.set.Spec.Pod.Containers[0].Image = server
	password := passwords.StringData["password"] // the response of the API server has none
	check(s.client.Create(ctx, &passwords))
	check(s.client.Create(ctx, o.set))
	o.whole(ctx)
	check(s.client.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: ordersNamespace},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "client", Image: writes, Args: []string{"run", o.set.PrimaryServiceName() + ":5432", writeInterval},
			Env: []corev1.EnvVar{{Name: "PGUSER", Value: "postgres"}, {Name: "PGPASSWORD", Value: password}},
		}}},
	}))
	return o
}

// gap ends the role of a primary that has had it for a while. It returns the longest time without an
// acknowledged write until all members run again.
func (o *orders) gap(ctx context.Context, end func(context.Context, *corev1.Pod)) (longest time.Duration) {
	old := o.primaryAtRest(ctx)
	before := len(o.pauses(ctx))
	end(ctx, old)
	waitFor(ctx, time.Minute, "another primary", func() (bool, string) {
		now := o.whole(ctx)
		return now != old.Name, now
	})
	waitFor(ctx, time.Minute, "the client", func() (bool, string) { return len(o.pauses(ctx)) > before, "" })
	for _, p := range o.pauses(ctx)[before:] {
		longest = max(longest, p)
	}
	return longest
}

// pauses returns the times without a write that the client has logged.
func (o *orders) pauses(ctx context.Context) (all []time.Duration) {
	for line := range strings.Lines(must(o.kubectl(ctx, ordersNamespace, "logs", "client"))) {
		if number, found := strings.CutSuffix(strings.TrimSpace(line), writer.PauseSuffix); found {
			all = append(all, time.Duration(must(strconv.Atoi(number)))*time.Millisecond)
		}
	}
	return all
}
