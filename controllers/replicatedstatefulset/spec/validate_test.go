package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

type change func(*v1alpha1.ReplicatedStatefulSet)

func commanded(name string, argv ...string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Commands[name] = v1alpha1.Command{Command: argv} }
}

func without(name string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) { delete(s.Spec.Pod.Commands, name) }
}

func sized(replicas, primaries int32) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas, s.Spec.Primaries = &replicas, &primaries }
}

func quorate(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Seeding = v1alpha1.SeedingQuorum }

func withVolumes(names ...string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		for _, name := range names {
			s.Spec.Pod.Volumes = append(s.Spec.Pod.Volumes, corev1.Volume{Name: name})
		}
	}
}

func withClaims(names ...string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		for _, name := range names {
			s.Spec.Pod.VolumeClaimTemplates = append(s.Spec.Pod.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
}

func withSecrets(names ...string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Secrets = names }
}

func called(name string) change { return func(s *v1alpha1.ReplicatedStatefulSet) { s.Name = name } }

// faulty is an invalid set. Admission rejects it, or a condition reports it if admission missed it.
type faulty struct {
	name   string
	change change
	want   string // "" if it is valid
}

func (f faulty) check(t *testing.T) {
	t.Helper()
	set := fixture.Read(t, "seed.yaml")
	f.change(set)
	if got := said(spec.Validate(set)); got != f.want {
		t.Errorf("%s:\n  %s\nwant\n  %s", f.name, got, f.want)
	}
}

const (
	ofOurs   = `Forbidden: label app and labels that begin with rss or clusterlabs.org/ are reserved for the operator; remove or rename it`
	duration = `is not a duration; use a format like 30s, 15m, 1h30m, 1D2h or 500ms, or a number of seconds like 8`
)

func budgeted(b v1alpha1.BudgetPolicy) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.PodDisruptionBudget = &b }
}

// TestValidateMaintenance tests RS-92: only admission rejects names that no member can have.
func TestValidateMaintenance(t *testing.T) {
	const wrong = `: the members of a set are named rss-<name of the set>-<ordinal from 0 to 999>; remove or correct it`
	for _, r := range []struct{ name, want string }{
		{"rss-example-0", ""},
		{"rss-example-999", ""},
		{"rss-example-1000", `spec.maintenance[0]: Invalid value: "rss-example-1000"` + wrong},
		{"rss-example-1-0", `spec.maintenance[0]: Invalid value: "rss-example-1-0"` + wrong},
		{"rss-example-01", `spec.maintenance[0]: Invalid value: "rss-example-01"` + wrong},
		{"example-1", `spec.maintenance[0]: Invalid value: "example-1"` + wrong},
	} {
		set := fixture.Read(t, "seed.yaml")
		set.Spec.Maintenance = []string{r.name}
		if got := said(spec.ValidateMaintenance(set)); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
		if got := said(spec.Validate(set)); got != "" {
			t.Errorf("%s makes the spec invalid: %s", r.name, got)
		}
	}
}

// TestValidate tests RS-5, RS-6, RS-31, RS-60, RS-66, RS-69, RS-70 and RS-93.
func TestValidate(t *testing.T) {
	const secret = `the volume name secret-<name> contains it: it may have at most 56 lower-case letters, digits and hyphens, with no hyphen at either end`
	long := strings.Repeat("x", 49)
	for _, r := range []faulty{
		{"the seed's own manifest", func(*v1alpha1.ReplicatedStatefulSet) {}, ""},
		{"RS-5 one member", sized(1, 1), ""},
		{"RS-5 two members", sized(2, 1), ""},
		{"RS-5 a negative number of members", sized(-1, 0), `spec.replicas: Invalid value: -1: must be 0 or more; 0 stops the set`},
		{"RS-87 RSS_EPOCH in preStop", commanded("preStop", "/x", "a$(RSS_EPOCH)"), `spec.pod.commands[preStop].command[1]: Invalid value: the kubelet runs preStop, and does not substitute the epoch; remove $(RSS_EPOCH) and $(RSS_CREATED)`},
		{"RS-87 RSS_EPOCH in promote", commanded("promote", "/x", "$(RSS_EPOCH)"), ""},
		{"RS-5 more primaries than members", sized(3, 4), `spec.primaries: Invalid value: 4: may not be more than replicas, which is 3; lower it, or remove it so that it follows replicas`},
		{"RS-5 no primary", sized(3, 0), `spec.primaries: Invalid value: 0: may be 0 only with replicas 0; to stop the set, set replicas to 0 and keep primaries`},
		{"RS-5 negative primaries", sized(3, -1), `spec.primaries: Invalid value: -1: must be 1 or more`},
		{"RS-37 a stopped set", sized(0, 0), ""},
		{"RS-37 a stopped set with primaries", sized(0, 2), ""},
		{"seeding Quorum without the command secondary", both(sized(3, 1), quorate), `spec.seeding: Invalid value: "Quorum": requires command secondary if not all members are primary: the others would have outdated copies; add spec.pod.commands.secondary, or use All`},
		{"seeding Quorum with the command secondary", both(sized(3, 1), quorate, commanded("secondary", "/follow")), ""},
		{"seeding Quorum with primaries only", both(sized(3, 3), quorate), ""},
		{"RS-31 a reconcileInterval of abc", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ReconcileInterval = "abc" }, `spec.reconcileInterval: Invalid value: "abc": ` + duration},
		{"RS-31 a failureWindow that overflows", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.FailureWindow = "293Y" }, `spec.failureWindow: Invalid value: "293Y": is too long; the max is 292 years`},
		{"RS-66 an unknown evictionPolicy", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.EvictionPolicy = "Forbid" }, `spec.evictionPolicy: Unsupported value: "Forbid": supported values: "Handover", "Allow"`},
		{"W9 a recreateUnresponsiveAfter of abc", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Failover = &v1alpha1.FailoverPolicy{RecreateUnresponsiveAfter: "abc"}
		}, `spec.failover.recreateUnresponsiveAfter: Invalid value: "abc": ` + duration},
		{"RS-155 a negative maxLoss", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Failover = &v1alpha1.FailoverPolicy{MaxLoss: new(int64(-1))}
		}, `spec.failover.maxLoss: Invalid value: -1: must be 0 or more`},
		{"RS-155 maxLoss without a claim", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Failover, s.Spec.Pod.VolumeClaimTemplates = &v1alpha1.FailoverPolicy{MaxLoss: new(int64(1))}, nil
		}, `spec.failover.maxLoss: Forbidden: without spec.pod.volumeClaimTemplates the copy of the former primary is lost with its pod; remove it, or add a claim`},
		{"W12 an unknown restartPrimary", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Failover = &v1alpha1.FailoverPolicy{RestartPrimary: "Always"}
		}, `spec.failover.restartPrimary: Unsupported value: "Always": supported values: "Never", "IfNewest"`},
		{"RS-70 an evictionTimeout of abc", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.EvictionTimeout = "abc" }, `spec.evictionTimeout: Invalid value: "abc": ` + duration},
		{"RS-93 an unknown retention policy", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.PersistentVolumeClaimRetentionPolicy = &v1alpha1.ClaimRetentionPolicy{WhenScaled: "Recycle"}
		}, `spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Recycle": supported values: "Retain", "Delete"`},
		{"RS-69 a budget with minAvailable and maxUnavailable", budgeted(v1alpha1.BudgetPolicy{MinAvailable: ptr.To[int32](1), MaxUnavailable: ptr.To[int32](1)}), `spec.podDisruptionBudget.minAvailable: Invalid value: 1: may not be set together with maxUnavailable; remove one of them`},
		{"RS-69 a disabled budget with a number", budgeted(v1alpha1.BudgetPolicy{MinAvailable: ptr.To[int32](1), Disabled: true}), `spec.podDisruptionBudget.disabled: Invalid value: true: disables the budget; remove minAvailable and maxUnavailable, or disabled`},
		{"RS-69 a negative budget", budgeted(v1alpha1.BudgetPolicy{MaxUnavailable: ptr.To[int32](-1)}), `spec.podDisruptionBudget.maxUnavailable: Invalid value: -1: must be from 0 to 1000`},
		{"RS-69 a budget above the maximum", budgeted(v1alpha1.BudgetPolicy{MinAvailable: ptr.To[int32](1001)}), `spec.podDisruptionBudget.minAvailable: Invalid value: 1001: must be from 0 to 1000`},
		{"RS-6 label app", func(s *v1alpha1.ReplicatedStatefulSet) { s.Labels = map[string]string{"app": "x", "apps": "y"} }, `metadata.labels[app]: ` + ofOurs},
		{"RS-6 a label that begins with rss", func(s *v1alpha1.ReplicatedStatefulSet) { s.Labels = map[string]string{"rssfeed": "x"} }, `metadata.labels[rssfeed]: ` + ofOurs},
		{"the role label on the object", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Labels = map[string]string{v1alpha1.LabelRole: "primary"}
		}, `metadata.labels[clusterlabs.org/role]: ` + ofOurs},
		{"a duplicate secret", withSecrets("a", "a"), `spec.secrets[1]: Duplicate value: "a"`},
		{"a secret whose name is invalid for a volume", withSecrets("a.b"), `spec.secrets[0]: Invalid value: "a.b": ` + secret},
		{"a secret with 57 characters", withSecrets(strings.Repeat("a", 57)), `spec.secrets[0]: Invalid value: "` + strings.Repeat("a", 57) + `": ` + secret},
		{"a node port", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ServicePorts[0].NodePort = 30000 },
			`spec.servicePorts[0].nodePort: Forbidden: these Services have no node ports; create a separate Service that selects app: <name> and rss-active-member: "true"`},
		{"an invalid ruleSelector", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.RuleSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}}
		}, `spec.ruleSelector.matchExpressions[0].values: Required value: must be specified when ` + "`operator`" + ` is 'In' or 'NotIn'`},
		{"RS-60 a name of 48 characters", called(long[1:]), ""},
		{"RS-60 a name of 49 characters", called(long), `metadata.name: Invalid value: "` + long + `": may have at most 48 characters: pods carry rss-<name>-<hash> as the value of a label, which has at most 63`},
		{"RS-60 a name with a dot", called("a.b"), `metadata.name: Invalid value: "a.b": must begin with a letter and go on with lower-case letters, digits and hyphens: Services are named after it`},
		{"RS-60 a name that begins with a digit", called("1a"), `metadata.name: Invalid value: "1a": must begin with a letter and go on with lower-case letters, digits and hyphens: Services are named after it`},
	} {
		r.check(t)
	}
}

// TestValidatePod tests RS-6, RS-31 and RS-61.
func TestValidatePod(t *testing.T) {
	const (
		known  = `supported values: "sequence", "status", "stop", "primary", "seed", "secondary", "promote", "demote", "leave", "preStop"`
		argv   = `Required value: set the program and its arguments, for example ["/status.sh"]`
		volume = `this name is reserved for a volume of the operator; rename it`
	)
	for _, r := range []faulty{
		{"RS-6 without sequence", without("sequence"), `spec.pod.commands[sequence]: Required value: add the command that prints how new the data of a member is`},
		{"RS-6 without status", without("status"), `spec.pod.commands[status]: Required value: add the command that says by its exit code whether a member runs`},
		{"RS-6 without stop", without("stop"), `spec.pod.commands[stop]: Required value: add the command that stops a member`},
		{"RS-6 without primary", without("primary"), `spec.pod.commands[primary]: Required value: add the command that starts a member as primary`},
		{"without seed, which is optional", without("seed"), ""},
		{"an unknown command", commanded("start", "/start"), `spec.pod.commands: Unsupported value: "start": ` + known},
		{"an empty command", commanded("stop"), `spec.pod.commands[stop].command: ` + argv},
		{"a command with an empty program", commanded("stop", "", "x"), `spec.pod.commands[stop].command: ` + argv},
		{"RS-31 a timeout of soon", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "soon"}
		}, `spec.pod.commands[stop].timeout: Invalid value: "soon": ` + duration},
		{"RS-6 no container", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers = nil }, `spec.pod.containers: Required value: a pod must have at least one container, in which commands run`},
		{"RS-6 no image", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[0].Image = "" }, `spec.pod.containers[0].image: Required value: each container needs an image`},
		{"RS-6 no image for an init container", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.InitContainers = []corev1.Container{{Name: "init"}}
		}, `spec.pod.initContainers[0].image: Required value: each container needs an image`},
		{"RS-61 an unknown container", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Container = "db" },
			`spec.pod.container: Invalid value: "db": is not in pod.containers; use the name of a container, or remove it to use the first`},
		{"a mount at a reserved path", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/etc/podinfo"}}
		}, `spec.pod.containers[0].volumeMounts[0].mountPath: Invalid value: "/etc/podinfo": the operator mounts its own volume there; use another path`},
		{"RS-6 label app on the pods", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Labels = map[string]string{"app": "x"} }, `spec.pod.labels[app]: ` + ofOurs},
		{"a reserved annotation on the pods", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Annotations = map[string]string{v1alpha1.AnnotationRules: "x"}
		}, `spec.pod.annotations[clusterlabs.org/rules]: Forbidden: annotations that begin with clusterlabs.org/ are reserved for the operator; remove it`},
		{"volume podinfo", withVolumes("podinfo"), `spec.pod.volumes[0].name: Invalid value: "podinfo": ` + volume},
		{"a volume with the name of a secret's volume", both(withSecrets("a"), withVolumes("secret-b", "secret-a")), `spec.pod.volumes[1].name: Invalid value: "secret-a": ` + volume},
		{"a duplicate volume", withVolumes("a", "b", "a"), `spec.pod.volumes[2].name: Duplicate value: "a"`},
		{"a claim without a name", withClaims(""), `spec.pod.volumeClaimTemplates[0].metadata.name: Required value: the claim is mounted under this name`},
		{"a duplicate claim", withClaims("a", "a"), `spec.pod.volumeClaimTemplates[1].metadata.name: Duplicate value: "a"`},
		{"a claim with the name of a volume", both(withVolumes("a"), withClaims("a")), `spec.pod.volumeClaimTemplates[0].metadata.name: Invalid value: "a": a volume has the same name; rename one of them`},
		{"a claim podinfo", withClaims("podinfo"), `spec.pod.volumeClaimTemplates[0].metadata.name: Invalid value: "podinfo": a volume has the same name; rename one of them`},
	} {
		r.check(t)
	}
}

func both(changes ...change) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		for _, c := range changes {
			c(s)
		}
	}
}

func said(errs field.ErrorList) string {
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

// TestTheSchemaKnowsTheGrammar tests that the schema and the parser have the same grammar.
func TestTheSchemaKnowsTheGrammar(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "crd", "bases", "clusterlabs.org_replicatedstatefulsets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition any
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	found := 0
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(child)
			}
		case map[string]any:
			if node["rule"] == "self.matches('"+spec.DurationForm.String()+"') && size(self) > 0" {
				found++
			}
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(definition)
	if found != 5 {
		t.Errorf("%d of the 5 durations have the pattern of the parser", found)
	}
}

func TestValidateOrders(t *testing.T) {
	const remedy = "is not the name of a member; the members are rss-example-0 to rss-example-2"
	for _, r := range []struct{ name, member, id, want string }{
		{"RS-102 a member", "rss-example-2", "2026-11-25", ""},
		{"RS-102 an ordinal above the last member", "rss-example-3", "a", `spec.switchoverTo.member: Invalid value: "rss-example-3": ` + remedy},
		{"RS-102 an invalid id", "rss-example-2", "No ID", `spec.switchoverTo.id: Invalid value: "No ID": an id has lower-case letters, digits and hyphens, with no hyphen at either end, for example 2026-11-25; correct it`},
	} {
		set := fixture.Read(t, "seed.yaml")
		set.Spec.SwitchoverTo = &v1alpha1.MemberOrder{Member: r.member, ID: r.id}
		if got := said(spec.ValidateOrders(set)); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestValidateOverrides(t *testing.T) {
	ordered := func(seed, to string) change {
		return func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Annotations = map[string]string{v1alpha1.AnnotationSeedFrom: seed, v1alpha1.AnnotationSwitchoverTo: to}
		}
	}
	const zero = "rss-example-0"
	const remedy = "is not the name of a member; the members are rss-example-0 to rss-example-2"
	for _, r := range []struct {
		name   string
		change change
		want   string
	}{
		{"no order", func(*v1alpha1.ReplicatedStatefulSet) {}, ""},
		{"orders of the first and the last member", ordered(zero, "rss-example-2"), ""},
		{"an order of an ordinal above the last member", ordered("rss-example-3", zero), `metadata.annotations[clusterlabs.org/seed-from]: Invalid value: "rss-example-3": ` + remedy},
		{"an empty order", ordered(zero, ""), `metadata.annotations[clusterlabs.org/switchover-to]: Invalid value: "": ` + remedy},
		{"an order of a member of another set", ordered(zero, "rss-other-0"), `metadata.annotations[clusterlabs.org/switchover-to]: Invalid value: "rss-other-0": ` + remedy},
		{"a member of a stopped set, before it comes back", both(ordered("rss-example-4", zero), func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Replicas, s.Status.RestoreReplicas = ptr.To(int32(0)), 5
		}), ""},
	} {
		set := fixture.Read(t, "seed.yaml")
		r.change(set)
		if got := said(spec.ValidateOverrides(set)); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}
