package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	singletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

const mailerFile = "config/samples/statefulsingleton/deployment.yaml"

var mailerKey = types.NamespacedName{Namespace: place.Namespace, Name: "mailer"}

// applyMailer applies the sample of StatefulSingleton. In the local cluster its program is the witness,
// which logs its start and stop into a folder that all nodes share.
func (s shown) applyMailer(ctx context.Context) error {
	change := func(*unstructured.Unstructured) error { return nil }
	if s.Kind == place.Local {
		image, err := s.Program(ctx, witness)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(s.witnessFolder(), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(s.witnessFolder(), 0o777); err != nil { // override the umask
			return err
		}
		change = func(sample *unstructured.Unstructured) error {
			return place.Template(sample, func(pod *corev1.PodSpec) { s.putWitness(pod, image) })
		}
	}
	if err := s.Apply(ctx, mailerFile, change); err != nil {
		return err
	}
	return s.Rolled(ctx, mailerKey)
}

func (s shown) witnessFolder() string { return filepath.Join(s.Local.Dir(), "witness") }

func (s shown) putWitness(pod *corev1.PodSpec, image string) {
	c := &pod.Containers[0]
	c.Image, c.Command, c.Args = image, []string{"/witness"}, nil
	for _, who := range []struct{ name, path string }{{"POD", "metadata.name"}, {"POD_UID", "metadata.uid"}, {"NODE", "spec.nodeName"}} {
		field := &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: who.path}
		c.Env = append(c.Env, corev1.EnvVar{Name: who.name, ValueFrom: &corev1.EnvVarSource{FieldRef: field}})
	}
	const folder = "/diary" // /witness is the program
	c.Env = append(c.Env, corev1.EnvVar{Name: "WITNESS_DIR", Value: folder})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "witness", MountPath: folder})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "witness",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: s.witnessFolder()}}})
}

// rollMailer restarts the sample like `kubectl rollout restart`, and prints the witness's log.
func (s shown) rollMailer(ctx context.Context) error {
	before, err := s.diary()
	if err != nil {
		return err
	}
	var deployment appsv1.Deployment
	if err := s.Client.Get(ctx, mailerKey, &deployment); err != nil {
		return err
	}
	var singleton singletonv1.StatefulSingleton
	if err := s.Client.Get(ctx, mailerKey, &singleton); err != nil {
		return err
	}
	old := singleton.Status.ActivePod
	grants, err := s.watchGrants(ctx)
	if err != nil {
		return err
	}
	defer grants.Stop()
	restarted := deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&restarted.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", time.Now().Format(time.RFC3339))
	if err := s.Client.Patch(ctx, restarted, client.MergeFrom(&deployment)); err != nil {
		return fmt.Errorf("restart the mailer: %w", err)
	}
	if err := s.Rolled(ctx, mailerKey); err != nil {
		return err
	}
	err = s.Until(ctx, func(ctx context.Context) (bool, string, error) {
		err := s.Client.Get(ctx, mailerKey, &singleton)
		now := &singleton.Status
		return now.Phase == singletonv1.PhaseRunning && now.ActivePod != "" && now.ActivePod != old,
			fmt.Sprintf("StatefulSingleton mailer: %s, active pod %s", now.Phase, now.ActivePod), err
	})
	if err != nil {
		return err
	}
	if err := tellGrants(grants, singleton.Status.ActivePod); err != nil {
		return err
	}
	if s.Kind != place.Local {
		fmt.Println("mailer: the start and stop times of the programs are available only in the local cluster, whose nodes share this machine's clock and a folder")
		return nil
	}
	after, err := s.diary()
	if err != nil {
		return err
	}
	return tell(before, after)
}

// diary returns the lines of the witness so far.
func (s shown) diary() ([]testimony.Line, error) {
	if s.Kind != place.Local {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(s.witnessFolder(), testimony.DiaryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines, _, err := testimony.Read(text)
	return lines, err
}

// tell prints the start and stop times of the previous program and of those that have started since.
func tell(before, after []testimony.Line) error {
	first := len(before) - 1
	for first > 0 && before[first].What != testimony.Start {
		first--
	}
	stops := map[string]int64{}
	for _, l := range after {
		if l.What == testimony.Stop {
			stops[l.Run] = l.At
		}
	}
	runs := testimony.Runs(after[max(first, 0):], stops)
	now := testimony.Now()
	for _, gap := range testimony.Gaps(runs) {
		if gap.Before.Alive() {
			return fmt.Errorf("the program of %s has not reported its stop, and that of %s has started", gap.Before.Pod, gap.After.Pod)
		}
		overlap := "none"
		for _, o := range testimony.Overlaps([]testimony.Run{gap.Before, gap.After}, now) {
			overlap = fmt.Sprintf("%d ms", o.Length.Milliseconds())
		}
		fmt.Printf("mailer: old program stopped at %s (pod %s on %s),\nmailer: new program started at %s (pod %s on %s): gap %d ms, overlap %s\n",
			clock(gap.Before.End, now), gap.Before.Pod, gap.Before.Node,
			clock(gap.After.Start, now), gap.After.Pod, gap.After.Node, gap.Length.Milliseconds(), overlap)
	}
	if len(runs) < 2 {
		return fmt.Errorf("the witness reports %d programs since the rollout started, want two", len(runs))
	}
	return nil
}

// clock converts a time of the monotonic clock to wall time.
func clock(at, now int64) string {
	return time.Now().Add(time.Duration(at - now)).Format("15:04:05.000")
}
