package statefulsingleton

import (
	"strings"
	"testing"


	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// S2: the ConfigMap of a namespace, whichever object asks for it.
func TestS2TheConfigMap(t *testing.T) {
	m := buildWrapper("ns", "#!/bin/sh\n", all(singleton("web"), singleton("db")))
	if m.Name != "statefulsingleton-wrapper" || m.Namespace != "ns" || m.Data["entrypoint-wrapper.sh"] != "#!/bin/sh\n" ||
		m.Labels["app.kubernetes.io/part-of"] != "statefulsingleton-operator" || m.Labels["app.kubernetes.io/managed-by"] != "statefulsingleton-controller" {
		t.Errorf("%v", m)
	}
	var owners []string
	for _, o := range m.OwnerReferences {
		owners = append(owners, o.Name)
		if string(o.UID) != "uid-of-"+o.Name || o.Kind != "StatefulSingleton" || o.APIVersion != v1.GroupVersion.String() || o.Controller != nil || o.BlockOwnerDeletion != nil {
			t.Errorf("%v", o)
		}
	}
	if strings.Join(owners, " ") != "db web" {
		t.Errorf("it belongs to %v, want db and web: it goes with the last of them", owners)
	}
}

// S2: the script can be executed, and is the one of the ConfigMap.
func TestS2TheScriptIsMounted(t *testing.T) {
	source := scriptsVolume().ConfigMap
	if source.Name != buildWrapper("ns", "", nil).Name || *source.DefaultMode != 0o755 || v1.ScriptInPod != "/opt/wrapper/entrypoint-wrapper.sh" {
		t.Errorf("%v", source)
	}
}

func TestTheGrant(t *testing.T) {
	if got := grantOf("1b4e-28ba", 7); got != "1b4e-28ba 7" {
		t.Error(got)
	}
}
