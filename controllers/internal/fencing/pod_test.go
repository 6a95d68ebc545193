package fencing

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDurations(t *testing.T) {
	for seconds, want := range map[int32]string{15: "--duration=15s", 1: "--duration=10s", 6000: "--duration=600s", 10: "--duration=10s", 600: "--duration=600s"} {
		if got := DurationArgument(seconds); got != want {
			t.Errorf("the argument of %d s is %q, want %q", seconds, got, want)
		}
	}
	for seconds := int32(MinSeconds); seconds <= MaxSeconds; seconds++ {
		if got := DurationOf(DurationArgument(seconds)); got != time.Duration(seconds)*time.Second {
			t.Fatalf("the duration of %d s is %s", seconds, got)
		}
	}
	for _, argument := range []string{"", "15s", "--duration=", "--duration=9s", "--duration=09s", "--duration=601s", "--duration=1000s", "--duration=15", "--duration=15m",
		"--duration=15s ", " --duration=15s", "--duration=15s\n", "--duration=-15s", "--duration=1.5s", "--lease=15s"} {
		if got := DurationOf(argument); got != 0 {
			t.Errorf("the duration of %q is %s", argument, got)
		}
	}
}

func TestNamesOfPods(t *testing.T) {
	if got := Identity(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", UID: "1b4e-28ba"}}); got != "db-1_1b4e-28ba" {
		t.Errorf("the identity is %q", got)
	}
	if got := AccountOf(&corev1.PodSpec{}); got != "default" {
		t.Errorf("a pod without an account uses %q", got)
	}
	if got := AccountOf(&corev1.PodSpec{ServiceAccountName: "app"}); got != "app" {
		t.Errorf("a pod with an account uses %q", got)
	}
}

// TestVolume tests that volumes are equal, and that a change of one does not change another.
func TestVolume(t *testing.T) {
	v := Volume("fencing")
	sources := v.Projected.Sources
	if v.Name != "fencing" || len(sources) != 3 || sources[0].ServiceAccountToken == nil || sources[1].ConfigMap == nil || sources[2].DownwardAPI == nil {
		t.Fatalf("the volume is %v", v)
	}
	paths := map[string]string{}
	for _, file := range sources[2].DownwardAPI.Items {
		paths[file.Path] = file.FieldRef.FieldPath
	}
	for path, field := range map[string]string{"namespace": "metadata.namespace", "pod-name": "metadata.name", "pod-uid": "metadata.uid"} {
		if paths[path] != field {
			t.Errorf("file %s has field %q, want %s", path, paths[path], field)
		}
	}
	sources[2].DownwardAPI.Items[0].Path, *v.Projected.DefaultMode, sources[1].ConfigMap.Items[0].Key = "x", 1, "y"
	again := Volume("fencing").Projected
	if again.Sources[2].DownwardAPI.Items[0].Path == "x" || *again.DefaultMode != FileMode || again.Sources[1].ConfigMap.Items[0].Key != CAFile {
		t.Errorf("a change of a volume changes another: %v", again)
	}
}
