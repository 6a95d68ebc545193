// Command postgres demonstrates the PostgreSQL sample of StatefulSingleton in the local cluster (or
// that of KUBECONFIG). It writes rows and restarts the Deployment repeatedly. From the servers' own
// logs it reports when each stopped and the next one started, and it checks that the rows are still
// there.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/test/run/place"
)

const (
	sampleFile = "config/samples/statefulsingleton/postgres.yaml"
	imageTar   = "build/run/postgres.tar"
	name       = "postgres-database"
	rollouts   = 3
)

var key = types.NamespacedName{Namespace: place.Namespace, Name: name}

func main() {
	log.SetLogger(logr.Discard()) // the command prints its own output
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

// database is the sample in its cluster.
type database struct{ place.Place }

func run(ctx context.Context) error {
	say("Finding a cluster")
	where, err := place.Find(ctx)
	if err != nil {
		return err
	}
	d := database{where}
	say("Deploying the operator")
	if err := d.Operator(ctx); err != nil {
		return err
	}
	say("Applying the sample " + sampleFile)
	if err := d.apply(ctx); err != nil {
		return err
	}
	say("Writing rows")
	if err := d.write(ctx); err != nil {
		return err
	}
	logs := &serverLogs{}
	defer logs.end()
	for i := range rollouts {
		say(fmt.Sprintf("Rollout %d of %d", i+1, rollouts))
		if err := d.rollOut(ctx, logs); err != nil {
			return err
		}
	}
	say("Logs of the servers")
	if err := logs.tell(rollouts + 1); err != nil {
		return err
	}
	return d.read(ctx)
}

func say(step string) { fmt.Printf("\n==> %s\n", step) }

// apply applies the sample, in the local cluster with an image that is built from the distribution's
// packages.
func (d database) apply(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, StringData: map[string]string{"password": "only-for-show"}}
	if err := d.Client.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the password: %w", err)
	}
	var image string
	if d.Local != nil {
		fmt.Println("building an image of PostgreSQL from the distribution's packages …")
		var err error
		if image, err = databaseImage.Write(ctx, imageTar); err != nil {
			return err
		}
		if image, err = d.Load(ctx, image, imageTar); err != nil {
			return err
		}
	}
	err := d.Apply(ctx, sampleFile, func(sample *unstructured.Unstructured) error {
		if image == "" {
			return nil
		}
		return place.Template(sample, func(pod *corev1.PodSpec) { pod.Containers[0].Image = image })
	})
	if err != nil {
		return err
	}
	return d.Rolled(ctx, key)
}

const rows = 10000

func (d database) write(ctx context.Context) error {
	_, err := d.sql(ctx, fmt.Sprintf("create table if not exists mail (id int primary key, text text); "+
		"insert into mail select n, md5(n::text) from generate_series(1, %d) n on conflict do nothing", rows))
	if err == nil {
		fmt.Printf("%d rows are written\n", rows)
	}
	return err
}

func (d database) read(ctx context.Context) error {
	answer, err := d.sql(ctx, "select count(*) from mail where text = md5(id::text)")
	if err != nil {
		return err
	}
	fmt.Printf("%s of %d rows exist, after %d rollouts\n", answer, rows, rollouts)
	if answer != fmt.Sprint(rows) {
		return fmt.Errorf("rows are missing")
	}
	return nil
}

// sql runs a query on the server of the active pod.
func (d database) sql(ctx context.Context, text string) (string, error) {
	var pods corev1.PodList
	if err := d.Client.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{"app": name}); err != nil {
		return "", err
	}
	// Other pods wait for their grant, or are deleted before.
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !ready(&p) })
	if len(pods.Items) != 1 {
		return "", fmt.Errorf("want one Ready pod of the database, got %d", len(pods.Items))
	}
	out, err := d.kubectl(ctx, "exec", pods.Items[0].Name, "-c", "postgres", "--", "psql", "-h", "/tmp", "-U", "postgres", "-At", "-c", text).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("query the database: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (d database) kubectl(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"--kubeconfig", d.Kubeconfig, "-n", key.Namespace}, args...)
	return exec.CommandContext(ctx, d.Kubectl, args...)
}

// rollOut restarts the Deployment, and follows the log of the replaced pod.
func (d database) rollOut(ctx context.Context, logs *serverLogs) error {
	if err := logs.follow(ctx, d); err != nil {
		return err
	}
	if out, err := d.kubectl(ctx, "rollout", "restart", "deployment", name).CombinedOutput(); err != nil {
		return fmt.Errorf("restart the database: %w: %s", err, out)
	}
	if err := d.Rolled(ctx, key); err != nil {
		return err
	}
	if err := logs.follow(ctx, d); err != nil {
		return err
	}
	time.Sleep(time.Second) // for the new server's log
	return nil
}
