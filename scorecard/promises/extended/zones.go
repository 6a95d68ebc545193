package extended

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// zoned labels nodes as zones a, b and so on. The label key is unique to the namespace. The labels
// are removed at the end.
func zoned(ctx context.Context, c *kit.Cluster, zones int) (nodes []string, label string) {
	label = "zone.example.com/" + c.Namespace
	all := c.Schedulable(ctx)
	c.Expect(len(all)).To(BeNumerically(">=", zones), "%d nodes are required, and there are %d", zones, len(all))
	for i, name := range all[:zones] {
		c.Cleanup(func() {
			kit.Change(context.WithoutCancel(ctx), c, kit.Node(name), func(n *corev1.Node) { delete(n.Labels, label) })
		})
		kit.Change(ctx, c, kit.Node(name), func(n *corev1.Node) { n.Labels[label] = zoneName(i) })
	}
	return all[:zones], label
}

func zoneName(i int) string { return string(rune('a' + i)) }

func inZones(label string, zones ...string) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { s.ZoneNodeLabel, s.Zones = label, zones }
}

// zonesUpgrade has two zones and a user's own node affinity.
func zonesUpgrade(ctx context.Context, c *kit.Cluster) {
	nodes, label := zoned(ctx, c, 3)
	pods := c.LookOut(ctx)
	x := newFixture(c, "zones", 2, coexist, patiently, inZones(label, "a", "b"), requires(nodes), func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.InjectReplicasEnv = nil
		k := keeperOf(s)
		k.Env = append(k.Env, corev1.EnvVar{Name: v1alpha1.EnvKubeAZ, Value: "the objects of the user"})
		before := *k.DeepCopy()
		before.Name, before.Command = "before", []string{"/bin/sh", "-c", "true"}
		s.Template.Spec.Template.Spec.InitContainers = []corev1.Container{before}
	})
	x.create(ctx)
	x.inTheirZones(ctx, nodes, "a", "b")
	capacity := pods.Hold(least("zones", 4))
	inTurn := pods.Hold(zonesInTurn("zones", "2", 2))
	x.edit(ctx, inVersion("2"))
	x.serves(ctx, 2)
	x.inTheirZones(ctx, nodes, "a", "b")
	c.Check(inTurn.Kept())
	// A failure in the last zone is rolled back in the first zone too.
	bad := running(`[ "$KUBE_AZ" = b ] && exit 1; ` + keeper)
	x.edit(ctx, inVersion("3"), bad, watchFor(15*time.Second, time.Minute))
	x.takenBack(ctx, v1alpha1.PhaseStale, 2)
	x.inTheirZones(ctx, nodes, "a", "b")
	c.Check(capacity.Kept())
}

// requires adds a user's node affinity: two terms, at least one must match.
func requires(nodes []string) specChange {
	term := func(names ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names}}}
	}
	return func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Template.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term(nodes[:2]...), term(nodes[2:]...)}}}}
	}
}

// zonesInTurn returns a check that a version has no pod in zone 1 before all its pods in zone 0 are
// Ready.
func zonesInTurn(set, version string, replicas int) func(map[types.UID]*corev1.Pod) error {
	first := false
	return func(pods map[types.UID]*corev1.Pod) error {
		in := func(zone string, p *corev1.Pod) bool {
			return ofSet(p, set) && p.Labels[v1alpha1.LabelVersion] == version && p.Labels[v1alpha1.LabelZoneIndex] == zone
		}
		first = first || count(pods, func(p *corev1.Pod) bool { return in("0", p) && serving(p, set) }) == replicas
		if n := count(pods, func(p *corev1.Pod) bool { return in("1", p) }); n > 0 && !first {
			return fmt.Errorf("zone 1 has %d pods of version %s, and zone 0 is not complete: %s", n, version, roll(pods, set))
		}
		return nil
	}
}

// inTheirZones checks the zones and the environment of the pods. zones are in the order of the
// spec, and nodes[i] is the only node of the i-th zone by name.
func (x *fixture) inTheirZones(ctx context.Context, nodes []string, zones ...string) {
	pods := x.pods(ctx)
	children := x.children(ctx)
	order, err := json.Marshal(zones)
	x.Check(err)
	// Pods are not restarted for a new order of zones. Their environment has the order at their
	// start.
	for name, child := range children {
		have := child.Annotations[v1alpha1.AnnotationZones]
		x.Expect(have).To(Equal(string(order)), "%s should have the order of the zones %s: %s", name, order, have)
	}
	for name, p := range pods {
		zone := p.Labels[v1alpha1.LabelZoneName]
		at := slices.IndexFunc(x.set.Status.Zones, func(z v1alpha1.ZoneStatus) bool { return z.Name == zone })
		x.Expect(at).To(BeNumerically(">=", 0), "%s is of zone %q: %s", name, zone, describe(x.set))
		x.Expect(zones).To(ContainElement(zone), "%s is of zone %q: %s", name, zone, describe(x.set))
		index := int(x.set.Status.Zones[at].Index)
		x.Expect(p.Spec.NodeName).To(Equal(nodes[zone[0]-'a']), "the node of %s of zone %s", name, zone)
		x.Expect(p.Labels[v1alpha1.LabelZoneIndex] == strconv.Itoa(index) && p.Annotations[v1alpha1.AnnotationZones] != "").To(BeTrue(),
			"%s of zone %s should have index %d: %v, %v", name, zone, index, p.Labels, p.Annotations)
		x.Check(knowsZone(&p, zone, index, *x.set.Spec.Template.Spec.Replicas, x.set.Spec.InjectReplicasEnv))
	}
}

// knowsZone checks the environment of all containers.
func knowsZone(p *corev1.Pod, zone string, index int, replicas int32, counts *bool) error {
	want := map[string]string{v1alpha1.EnvKubeAZ: zone, v1alpha1.EnvBoshAZ: zone, v1alpha1.EnvOperatorAZ: zone, v1alpha1.EnvAZIndex: strconv.Itoa(index + 1)}
	if counts == nil || *counts {
		want[v1alpha1.EnvReplicas] = strconv.Itoa(int(replicas))
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for name, value := range want {
			found := slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return e.Name != name })
			if len(found) != 1 || found[0].Value != value {
				return fmt.Errorf("container %s of %s should only have %s=%s: %v", c.Name, p.Name, name, value, found)
			}
		}
	}
	return nil
}

// zonesChange keeps data in zones that are removed and added again.
func zonesChange(ctx context.Context, c *kit.Cluster) {
	nodes, label := zoned(ctx, c, 3)
	x := newFixture(c, "zoned", 1, onClaims, patiently, inZones(label, "a", "b"))
	x.create(ctx)
	x.inTheirZones(ctx, nodes, "a", "b")
	first := x.Claims(ctx)
	for _, zones := range [][]string{{"b", "a"}, {"b", "a", "c"}, {"b", "c"}, {"a", "b", "c"}} {
		c.During(fmt.Sprintf("zones %v", zones), func() {
			x.edit(ctx, inZones(label, zones...))
			x.serves(ctx, 1)
			x.keepsIndexes(ctx, "a", "b", "c")
			x.inTheirZones(ctx, nodes, zones...)
		})
	}
	x.edit(ctx, inVersion("2"))
	x.serves(ctx, 2)
	x.keptDataIn(ctx, first)
}

// keepsIndexes checks that the name of each StatefulSet has the permanent index of its zone.
func (x *fixture) keepsIndexes(ctx context.Context, order ...string) {
	children := x.children(ctx)
	for name, child := range children {
		index := slices.Index(order, child.Labels[v1alpha1.LabelZoneName])
		want := fmt.Sprintf("%s-z%d-v%d", x.set.Name, index, x.set.Status.CurrentVersion)
		x.Expect(name).To(Equal(want), "%s is of zone %q, and should be named %s", name, child.Labels[v1alpha1.LabelZoneName], want)
	}
}

// keptDataIn checks that the first claims still exist, that the pods of the zones wrote to them in
// version 1, and that each zone has one claim.
func (x *fixture) keptDataIn(ctx context.Context, first map[string]corev1.PersistentVolumeClaim) {
	now := x.Claims(ctx)
	for name, claim := range first {
		x.Expect(now[name].UID).To(Equal(claim.UID), "claim %s has the data of a zone, and is missing or was replaced", name)
	}
	x.Expect(len(now)).To(Equal(len(x.set.Spec.Zones)), "%d claims exist for %d zones", len(now), len(x.set.Spec.Zones))
	x.keptData(ctx)
}
