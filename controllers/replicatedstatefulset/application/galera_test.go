package application_test

import (
	"strings"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestRS151AnEvenNumberOfMembers(t *testing.T) {
	for replicas, warns := range map[int32]bool{0: false, 1: false, 2: true, 3: false, 4: true} {
		for _, set := range []*v1alpha1.ReplicatedStatefulSet{fixture.Etcd(), fixture.MariaDBGalera(), fixture.RabbitMQ()} {
			set.Spec.Replicas = &replicas
			got := strings.Join(application.Warnings(set), "; ")
			if strings.Contains(got, "set an odd number") != warns {
				t.Errorf("%d replicas: %q", replicas, got)
			}
		}
	}
}
