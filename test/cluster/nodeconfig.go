package cluster

import (
	"bytes"
	"maps"
	"path/filepath"
	"text/template"
)

// nodeConfigs returns the configuration files of a node's programs, by path.
func (c *Cluster) nodeConfigs(n node) map[string]string {
	values := map[string]any{
		"Name": n.name, "Address": n.address, "PodRange": n.podRange, "ClusterRange": c.podRange(),
		"Cgroup": n.cgroup, "Dir": n.dir, "DNS": dnsAddress,
		"CA":   c.path("certs", "ca.crt"),
		"Cert": c.path("certs", n.name+"-serving.crt"), "Key": c.path("certs", n.name+"-serving.key"),
		"ProxyKubeconfig": c.path("kube-proxy.kubeconfig"),
		"Pause":           PauseImage,
		"Snapshotter":     snapshotter(c.dir),
		"KeepOOMScore":    !rootHas(sysResource),
		"FeatureGates":    c.nodeGates(),
		"Version":         c.state.Version,
	}
	files := map[string]string{}
	for file, text := range map[string]string{
		"containerd.toml":   containerdConfig,
		"kubelet.yaml":      kubeletConfig,
		"kube-proxy.yaml":   kubeProxyConfig,
		"cni/pods.conflist": cniConfig,
		// Registries of this machine have certificates of the cluster's authority.
		"registries/_default/hosts.toml": `ca = "` + c.Authority() + "\"\n",
		// Pods without the cluster's DNS use CoreDNS too, because it forwards unknown names.
		"resolv.conf": "nameserver " + c.state.Address + "\n",
	} {
		var out bytes.Buffer
		template.Must(template.New(file).Parse(text)).Execute(&out, values) //nolint:errcheck // a buffer takes all
		files[filepath.Join(n.dir, file)] = out.String()
	}
	return files
}

// nodeGates returns the feature gates of a node's programs. In 1.33, the gate for a setting of
// kubeletConfig is off by default.
func (c *Cluster) nodeGates() map[string]bool {
	if c.state.Version != "1.33" {
		return c.state.FeatureGates
	}
	gates := map[string]bool{"KubeletCrashLoopBackOffMax": true}
	maps.Copy(gates, c.state.FeatureGates)
	return gates
}

// nodeProgram returns the command line of one of a node's programs.
func (c *Cluster) nodeProgram(n node, name string) []string {
	switch name {
	case "containerd":
		return []string{filepath.Join(c.state.Sets[Containerd], "containerd"), "--config", filepath.Join(n.dir, "containerd.toml")}
	case "kubelet":
		return []string{
			filepath.Join(c.Programs(), "kubelet"),
			"--config=" + filepath.Join(n.dir, "kubelet.yaml"),
			"--kubeconfig=" + c.path(n.name+".kubeconfig"),
			"--hostname-override=" + n.name,
			"--node-ip=" + n.address,
			"--node-labels=topology.kubernetes.io/zone=" + n.zone,
		}
	default:
		return []string{filepath.Join(c.Programs(), "kube-proxy"), "--config=" + filepath.Join(n.dir, "kube-proxy.yaml")}
	}
}

// snapshotter returns overlayfs, or native if dir is itself on an overlay, as in a container: overlays
// cannot be stacked there.
func snapshotter(dir string) string {
	if onOverlay(dir) {
		return "native"
	}
	return "overlayfs"
}

const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins.'io.containerd.cri.v1.images']
snapshotter = "{{.Snapshotter}}"
use_local_image_pull = true # the other way to pull knows overlayfs only
stats_collect_period = 3600 # of the sizes of images and layers, which nobody asks for

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "{{.Dir}}/registries"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{{.Pause}}"

[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = {{.KeepOOMScore}}
# It would ask each container for its CPU time each second, which is most of what idle
# pods cost.
stats_collect_period = "10m"
stats_retention_period = "20m"

[plugins.'io.containerd.cri.v1.runtime'.cni]
use_internal_loopback = true # instead of a plugin that is started for each pod
bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
conf_dir = "{{.Dir}}/cni"

[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "crun"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]
runtime_type = "io.containerd.runc.v2" # the shim, which calls what takes runc's arguments

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun.options]
BinaryName = "{{.Dir}}/crun"
SystemdCgroup = false
`

// crunScript runs crun; its path is inserted. crun of Debian 12 rejects newer versions of the OCI
// runtime specification, and containerd writes its newest one. The script replaces it by an older
// version. The containers here use no newer features.
//
// With the variable crun trusts the mount of its binary, which is read-only on nodes, so that no
// container can write to it. Otherwise crun starts itself a second time from such a mount.
const crunScript = `#!/bin/sh
last=
for arg; do
	[ "$last" != --bundle ] || sed -i 's/"ociVersion":"[0-9.]*"/"ociVersion":"1.0.2"/' "$arg/config.json" || exit 1
	last=$arg
done
export _LIBCONTAINER_CLONED_BINARY=1
exec %s "$@"
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: {{.CA}}}}
authorization: {mode: Webhook}
tlsCertFile: {{.Cert}}
tlsPrivateKeyFile: {{.Key}}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: {{.Cgroup}}
{{- if ne .Version "1.30"}}
failCgroupV1: false
# Tests wait for it: how soon a container that ends again and again is started.
crashLoopBackOff: {maxContainerRestartPeriod: 40s}
{{- end}}
failSwapOn: false
clusterDNS: [{{.DNS}}]
clusterDomain: cluster.local
resolvConf: {{.Dir}}/resolv.conf
staticPodPath: {{.Dir}}/static-pods
maxPods: 250
serializeImagePulls: false
# Tests wait for it too: how soon a static pod is shown again whose mirror was deleted.
syncFrequency: 30s
nodeLeaseDurationSeconds: 20
# The disk is this machine's: its being full is not the node's matter, and an
# image that was loaded cannot be pulled again.
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
{{- if .FeatureGates}}
featureGates:
{{- range $gate, $on := .FeatureGates}}
  {{$gate}}: {{$on}}
{{- end}}
{{- end}}
`

const kubeProxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: {{.ProxyKubeconfig}}, qps: 1000, burst: 1000}
clusterCIDR: {{.ClusterRange}}
hostnameOverride: {{.Name}}
# These limits are of the whole machine, not of a node.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
{{- if .FeatureGates}}
featureGates:
{{- range $gate, $on := .FeatureGates}}
  {{$gate}}: {{$on}}
{{- end}}
{{- end}}
`

const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isDefaultGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/var/lib/cni/networks",
        "ranges": [[{"subnet": "{{.PodRange}}"}]]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
