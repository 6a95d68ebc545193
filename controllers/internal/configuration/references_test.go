package configuration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// podOf parses the YAML of a pod template.
func podOf(t testing.TB, text string) *corev1.PodSpec {
	t.Helper()
	var pod corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// describe returns one line per usage: source, used keys, required parts.
func describe(all []usage) string {
	lines := make([]string, 0, len(all))
	for _, u := range all {
		keys := strings.Join(u.keys, ",")
		if u.whole {
			keys = "*"
		}
		lines = append(lines, fmt.Sprintf("%s [%s] needs %q", u.Origin, keys, slices.Sorted(maps.Keys(u.needs))))
	}
	return strings.Join(lines, "\n")
}

func TestE13EveryReferenceIsFound(t *testing.T) {
	for _, row := range []struct{ sentence, pod, want string }{
		{"a volume with all keys of a ConfigMap", `volumes: [{name: v, configMap: {name: a}}]`, `ConfigMap a [*] needs [""]`},
		{"a volume with some keys of a Secret", `volumes: [{name: v, secret: {secretName: a, items: [{key: q, path: q}, {key: p, path: p}]}}]`, `Secret a [p,q] needs ["" "p" "q"]`},
		{"an optional volume", `volumes: [{name: v, secret: {secretName: a, optional: true}}]`, `Secret a [*] needs []`},
		{"a projected volume", `volumes: [{name: v, projected: {sources: [{configMap: {name: a}}, {secret: {name: b, optional: true}}, {serviceAccountToken: {path: t}}, {downwardAPI: {}}]}}]`,
			"ConfigMap a [*] needs [\"\"]\nSecret b [*] needs []"},
		{"envFrom", `containers: [{name: c, envFrom: [{configMapRef: {name: a}}, {secretRef: {name: b, optional: true}}]}]`,
			"ConfigMap a [*] needs [\"\"]\nSecret b [*] needs []"},
		{"env", `containers: [{name: c, env: [{name: E, valueFrom: {configMapKeyRef: {name: a, key: k}}}, {name: F, valueFrom: {secretKeyRef: {name: b, key: k, optional: true}}}]}]`,
			"ConfigMap a [k] needs [\"\" \"k\"]\nSecret b [k] needs []"},
		{"E18 env without references", `containers: [{name: c, env: [{name: E, value: one}, {name: F}, {name: G, valueFrom: {fieldRef: {fieldPath: metadata.Name}}}, {name: H, valueFrom: {}}]}]`, ""},
		{"an init container", `initContainers: [{name: c, envFrom: [{secretRef: {name: a}}]}]`, `Secret a [*] needs [""]`},
		{"an ephemeral container", `ephemeralContainers: [{name: c, envFrom: [{secretRef: {name: a}}]}]`, `Secret a [*] needs [""]`},
		{"imagePullSecrets, which the kubelet does not require", `imagePullSecrets: [{name: a}, {}]`, `Secret a [*] needs []`},
		{"an empty name", `containers: [{name: c, envFrom: [{configMapRef: {}}]}]`, ""},
		{"a reference to all keys and one to a single key", `
containers: [{name: c, env: [{name: E, valueFrom: {configMapKeyRef: {name: a, key: k, optional: true}}}], envFrom: [{configMapRef: {name: a}}]}]`, `ConfigMap a [*] needs [""]`},
		{"a required and an optional reference", `
containers: [{name: c, env: [{name: E, valueFrom: {configMapKeyRef: {name: a, key: k, optional: true}}}, {name: F, valueFrom: {configMapKeyRef: {name: a, key: l}}}]}]`, `ConfigMap a [k,l] needs ["" "l"]`},
		{"a ConfigMap and a Secret of the same name", `containers: [{name: c, envFrom: [{configMapRef: {name: a}}, {secretRef: {name: a}}]}]`,
			"ConfigMap a [*] needs [\"\"]\nSecret a [*] needs [\"\"]"},
		{"volumes whose driver receives a Secret", `
volumes:
- {name: a, csi: {driver: d, nodePublishSecretRef: {name: a}}}
- {name: b, flexVolume: {driver: d, secretRef: {name: b}}}
- {name: c, iscsi: {targetPortal: p, iqn: q, lun: 0, secretRef: {name: c}}}
- {name: d, rbd: {monitors: [m], image: i, secretRef: {name: d}}}
- {name: e, cephfs: {monitors: [m], secretRef: {name: e}}}
- {name: f, cinder: {volumeID: v, secretRef: {name: f}}}
- {name: g, scaleIO: {gateway: g, system: s, secretRef: {name: g}}}
- {name: h, storageos: {secretRef: {name: h}}}
- {name: i, azureFile: {secretName: i, shareName: s}}
- {name: j, csi: {driver: d}}
- {name: k, emptyDir: {}}`, func() string {
			var lines []string
			for _, name := range strings.Split("abcdefghi", "") {
				lines = append(lines, fmt.Sprintf("Secret %s [*] needs [\"\"]", name))
			}
			return strings.Join(lines, "\n")
		}()},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := describe(usages(podOf(t, row.pod))); got != row.want {
				t.Errorf("found\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

// The test fails if a new version of Kubernetes adds a kind of volume that refers to Secrets.
func TestEverySecretOfAVolumeIsKnown(t *testing.T) {
	want := map[string]string{"Secret": "SecretName", "AzureFile": "SecretName", "Projected": "Sources"}
	for _, name := range []string{"CSI", "FlexVolume", "ISCSI", "RBD", "CephFS", "Cinder", "ScaleIO", "StorageOS"} {
		want[name] = "SecretRef"
	}
	want["CSI"] = "NodePublishSecretRef"
	for field, inside := range secretFields() {
		if want[field] != inside {
			t.Errorf("volumes of kind %s reference a Secret in %s, which is not followed", field, inside)
		}
		delete(want, field)
	}
	delete(want, "Projected")
	if len(want) > 0 {
		t.Errorf("not found in the API: %v", want)
	}
}

func TestNamesThatCannotBeAreNotAskedFor(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "": false, "a/b": false, "..": false, "a%b": false} {
		if got := (Origin{KindSecret, name}).Possible(); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestOriginsOfSeveralTemplatesAreTheirUnion(t *testing.T) {
	one := podOf(t, `containers: [{name: c, envFrom: [{configMapRef: {name: b}}, {secretRef: {name: a}}]}]`)
	two := podOf(t, `containers: [{name: c, envFrom: [{configMapRef: {name: b}}, {configMapRef: {name: a}}]}]`)
	got := fmt.Sprint(Origins(one, two))
	if want := "[ConfigMap a ConfigMap b Secret a]"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	pod := podOf(t, `
containers:
- name: web
  env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: a, key: level}}}, {name: X, valueFrom: {configMapKeyRef: {name: a, key: x, optional: true}}}]`)
	u := usages(pod)[0]
	for _, row := range []struct {
		sentence string
		content  *content
		want     string
	}{
		{"the object is missing", nil, `ConfigMap a does not exist and is required by env LEVEL of container "web"`},
		{"the key is missing", &content{}, `ConfigMap a has no key "level", which is required by env LEVEL of container "web"`},
		{"object and key exist", &content{data: map[string][]byte{"level": nil}}, ""},
		{"the key is in binaryData", &content{binary: map[string][]byte{"level": nil}}, ""},
	} {
		if got := strings.Join(u.lacks(row.content), "; "); got != row.want {
			t.Errorf("%s: %q, want %q", row.sentence, got, row.want)
		}
	}
	optional := usage{Origin: Origin{KindSecret, "s"}, whole: true}
	if got := optional.lacks(nil); got != nil {
		t.Errorf("an optional reference: %q", got)
	}
}
