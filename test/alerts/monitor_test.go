package alerts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stateful-operator/stateful-operator/test/cluster/clustertest"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// monitor is a ServiceMonitor with only the fields that scrapes supports. A new field in
// config/prometheus therefore fails the test instead of being ignored.
type monitor struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Endpoints []endpoint `json:"endpoints"`
}

type endpoint struct {
	Port          string `json:"port"`
	Scheme        string `json:"scheme"`
	Path          string `json:"path"`
	HonorLabels   bool   `json:"honorLabels"`
	Authorization struct {
		Type        string `json:"type"`
		Credentials keyOf  `json:"credentials"`
	} `json:"authorization"`
	TLSConfig struct {
		ServerName string `json:"serverName"`
		CA         struct {
			Secret keyOf `json:"secret"`
		} `json:"ca"`
	} `json:"tlsConfig"`
}

// keyOf references a key of a Secret.
type keyOf struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// readMonitor decodes the spec of a ServiceMonitor.
func readMonitor(spec []byte) (monitor, error) {
	var m monitor
	decoder := json.NewDecoder(bytes.NewReader(spec))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("a ServiceMonitor that this test does not support: %w", err)
	}
	if len(m.Endpoints) != 1 {
		return m, fmt.Errorf("a ServiceMonitor with %d endpoints, and this test supports one", len(m.Endpoints))
	}
	return m, nil
}

// object is a part of Prometheus' configuration. The configuration is YAML, so JSON is valid too.
type object = map[string]any

// scrapes returns the scrape job that the Prometheus operator generates from a ServiceMonitor in a
// namespace. kubeconfig is used to discover targets. secret returns the file with a key of a Secret.
func (m monitor) scrapes(namespace, kubeconfig string, secret func(keyOf) string) object {
	e := m.Endpoints[0]
	return object{
		"job_name":      "serviceMonitor/" + namespace,
		"scheme":        e.Scheme,
		"metrics_path":  e.Path,
		"honor_labels":  e.HonorLabels,
		"authorization": object{"type": e.Authorization.Type, "credentials_file": secret(e.Authorization.Credentials)},
		"tls_config":    object{"server_name": e.TLSConfig.ServerName, "ca_file": secret(e.TLSConfig.CA.Secret)},
		"kubernetes_sd_configs": []object{{
			"role": "endpointslice", "kubeconfig_file": kubeconfig, "namespaces": object{"names": []string{namespace}},
		}},
		"relabel_configs": m.relabels(),
	}
}

// relabels returns the relabelings that select and name the targets, as the Prometheus operator
// generates them for a ServiceMonitor without relabelings.
func (m monitor) relabels() []object {
	const meta = "__meta_kubernetes_"
	var all []object
	for _, label := range slices.Sorted(maps.Keys(m.Selector.MatchLabels)) {
		name := strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(label)
		all = append(all, object{
			"action": "keep", "source_labels": []string{meta + "service_labelpresent_" + name, meta + "service_label_" + name},
			"regex": "true;" + m.Selector.MatchLabels[label],
		})
	}
	all = append(all,
		object{"action": "keep", "source_labels": []string{meta + "endpointslice_port_name"}, "regex": m.Endpoints[0].Port},
		object{"action": "drop", "source_labels": []string{meta + "pod_phase"}, "regex": "Failed|Succeeded"},
		object{"target_label": "endpoint", "replacement": m.Endpoints[0].Port},
	)
	for _, named := range [][2]string{
		{"namespace", "namespace"}, {"service", "service_name"}, {"job", "service_name"}, {"pod", "pod_name"}, {"container", "pod_container_name"},
	} {
		all = append(all, object{"target_label": named[0], "source_labels": []string{meta + named[1]}})
	}
	return all
}

// TestMonitorIsFollowedWhole verifies that monitor supports all fields of the ServiceMonitors.
// TestAlerts would not cover other fields.
func TestMonitorIsFollowedWhole(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifest.Render(filepath.Join(clustertest.Root, "config", "default", "monitoring"))
	g.Expect(err).To(Succeed())
	tried := 0
	for _, one := range objects {
		if one.GetKind() != "ServiceMonitor" {
			continue
		}
		tried++
		spec, _, err := unstructured.NestedMap(one.Object, "spec")
		g.Expect(err).To(Succeed())
		text, err := json.Marshal(spec)
		g.Expect(err).To(Succeed())
		_, err = readMonitor(text)
		g.Expect(err).To(Succeed())
		spec["sampleLimit"] = 1
		text, err = json.Marshal(spec)
		g.Expect(err).To(Succeed())
		_, err = readMonitor(text)
		g.Expect(err).To(MatchError(ContainSubstring("sampleLimit")))
	}
	g.Expect(tried).To(Equal(1))
}
