package spec_test

import (
	"fmt"
	"strings"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestVolumesOfTheOperator checks that each Secret of a set is a volume with a read-only mount.
func TestVolumesOfTheOperator(t *testing.T) {
	tls := func(peer, server string) *v1alpha1.TLSPolicy {
		return &v1alpha1.TLSPolicy{Static: &v1alpha1.StaticTLS{Member: &v1alpha1.MemberTLS{PeerSecret: peer, ServerSecret: server}}}
	}
	for _, r := range []struct {
		name    string
		secrets []string
		tls     *v1alpha1.TLSPolicy
		want    string
	}{
		{"no Secrets", nil, nil, "podinfo at /etc/podinfo"},
		{"Secrets", []string{"a", "b"}, nil, "podinfo at /etc/podinfo, secret-a of a at /etc/rss/secrets/a, secret-b of b at /etc/rss/secrets/b"},
		{"certificates", nil, tls("p", "s"), "podinfo at /etc/podinfo, tls-peer of p at /etc/rss/tls/peer, tls-server of s at /etc/rss/tls/server"},
		{"one certificate", nil, tls("", "s"), "podinfo at /etc/podinfo, tls-server of s at /etc/rss/tls/server"},
	} {
		set := fixture.SetOf(1, 1)
		set.Spec.Secrets, set.Spec.TLS = r.secrets, r.tls
		volumes, mounts := spec.OwnVolumes(&set.Spec), spec.OwnMounts(&set.Spec)
		var got []string
		for i, v := range volumes {
			text := v.Name
			if v.Secret != nil {
				text += " of " + v.Secret.SecretName
			}
			if mounts[i].Name != v.Name || !mounts[i].ReadOnly {
				t.Errorf("%s: volume %s has mount %+v", r.name, v.Name, mounts[i])
			}
			got = append(got, fmt.Sprintf("%s at %s", text, mounts[i].MountPath))
		}
		if text := strings.Join(got, ", "); text != r.want || len(mounts) != len(volumes) {
			t.Errorf("%s: %s\nwant %s", r.name, text, r.want)
		}
	}
}
