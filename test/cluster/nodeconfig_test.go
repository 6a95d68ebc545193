package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func threeNodes() *Cluster {
	return &Cluster{dir: "/c/a", log: io.Discard, state: state{
		Name: "a", Nodes: 3, Slot: 1, Address: "198.18.1.1",
		FeatureGates: map[string]bool{"B": false, "A": true},
		Sets:         map[Set]string{Kubernetes: "/k", Containerd: "/d"},
		Ports:        map[string]int{"apiserver": 6443},
		Processes:    map[string]process{},
	}}
}

func TestNodesDifferInAllThatMustDiffer(t *testing.T) {
	c := threeNodes()
	seen := map[string]string{}
	for _, n := range c.nodes() {
		for _, value := range []string{n.name, n.address, n.podRange, n.zone, n.link, n.dir, n.cgroup, c.mac(n.number)} {
			if other, taken := seen[value]; taken {
				t.Errorf("%s and %s share %s", n.name, other, value)
			}
			seen[value] = n.name
		}
		if len(n.link) > 15 {
			t.Errorf("link %s: longer than Linux allows", n.link)
		}
	}
	if got := strings.Join(c.Nodes(), " "); got != "node-1 node-2 node-3" {
		t.Errorf("nodes %s", got)
	}
}

func TestTheLastClusterAndNodeHaveAnAddress(t *testing.T) {
	c := threeNodes()
	c.state.Slot, c.state.Nodes = maxSlots-1, maxNodes
	last := c.nodes()[maxNodes-1]
	if last.address != "198.18.7.41" || last.podRange != "198.19.255.0/24" || c.podRange() != "198.19.224.0/19" {
		t.Errorf("address %s, pods %s of %s", last.address, last.podRange, c.podRange())
	}
}

func TestConfigsParseAndNameTheirNode(t *testing.T) {
	c := threeNodes()
	n := c.nodes()[1]
	files := c.nodeConfigs(n)
	read := func(name string) map[string]any {
		t.Helper()
		var out map[string]any
		if err := yaml.Unmarshal([]byte(files[filepath.Join(n.dir, name)]), &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return out
	}
	kubelet := read("kubelet.yaml")
	if kubelet["cgroupRoot"] != "/stateful-operator/a/node-2" || kubelet["failCgroupV1"] != false || kubelet["cgroupDriver"] != "cgroupfs" {
		t.Errorf("kubelet: %v", kubelet)
	}
	if gates := kubelet["featureGates"].(map[string]any); gates["A"] != true || gates["B"] != false {
		t.Errorf("feature gates: %v", gates)
	}
	if proxy := read("kube-proxy.yaml"); proxy["hostnameOverride"] != "node-2" || proxy["clusterCIDR"] != "198.19.32.0/19" {
		t.Errorf("kube-proxy: %v", proxy)
	}
	cni := files[filepath.Join(n.dir, "cni", "pods.conflist")]
	if !json.Valid([]byte(cni)) || !strings.Contains(cni, `"subnet": "198.19.34.0/24"`) {
		t.Errorf("CNI: %s", cni)
	}
	if containerd := files[filepath.Join(n.dir, "containerd.toml")]; !strings.Contains(containerd, `sandbox = "localhost/pause:1"`) {
		t.Errorf("containerd: %s", containerd)
	}
	args := strings.Join(c.nodeProgram(n, "kubelet"), " ")
	if !strings.Contains(args, "--node-labels=topology.kubernetes.io/zone=zone-b") {
		t.Errorf("kubelet: %s", args)
	}
}

func TestFeatureGatesAreInOneOrder(t *testing.T) {
	if got := threeNodes().featureGates(); len(got) != 1 || got[0] != "--feature-gates=A=true,B=false" {
		t.Errorf("got %q", got)
	}
}

func TestTheFolderOfASetFollowsWhatItIsBuiltFrom(t *testing.T) {
	dir := t.TempDir()
	goMod := filepath.Join(dir, "go.mod")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[string]bool{}
	key := func() {
		t.Helper()
		version, key, err := recipes[CoreDNS].version(goMod)
		if err != nil || version != "v1.2.3" {
			t.Fatalf("version %q, %v", version, err)
		}
		keys[key] = true
	}
	write(goMod, "module x\n\nrequire github.com/coredns/coredns v1.2.3\n")
	key()
	key()
	if err := os.Mkdir(filepath.Join(dir, "program"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "program", "main.go"), "package main\n")
	key()
	write(goMod, "module x\n\nrequire (\n\tgithub.com/coredns/coredns v1.2.3\n\tx.org/y v1.0.0\n)\n")
	key()
	if len(keys) != 3 {
		t.Errorf("%d keys for 3 contents", len(keys))
	}
	if _, _, err := recipes[Kwok].version(goMod); err == nil {
		t.Error("a set that is not required has a version")
	}
}

func TestUnknownSetsAreRefused(t *testing.T) {
	_, err := Build(t.Context(), &bytes.Buffer{}, "nothing")
	if err == nil || err.Error() != "build nothing: no such set of programs" {
		t.Errorf("got %v", err)
	}
}
