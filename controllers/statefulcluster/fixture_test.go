package statefulcluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// The worlds of the tables are built from fixtures:
//
//	seen(set("db").replicas(3), pod("a").on("n1").ready(), looseClaimOf("x").retained("Lost"))
//
// By default it is noon. Members have their claims, their nodes are healthy, and their revision is
// "now", which is the revision of the spec and was Ready before. The set has its disruption budget.
// Fresh ids are f1, f2, ..., and their names are on record.

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// thing is a part of a world. Revisions and pods need the set.
type thing interface{ into(w *facts.World) }

// seen returns the world of a live read.
func seen(set *setFixture, things ...thing) *facts.World {
	w := &facts.World{Now: noon, Live: true, Settings: spec.Settings{Set: spec.WithDefaults(&set.StatefulCluster)}, Refused: map[string]facts.Refusal{}, Retired: map[types.UID]bool{},
		Deleted: map[string]bool{}, Aside: map[types.UID]time.Time{}}
	w.Invalid = spec.Problem(w.Set)
	for i := range 20 {
		freshIDsAre(append(w.Fresh, fmt.Sprintf("f%d", i+1))...).into(w)
	}
	w.Budget = children.BuildBudget(w.Settings, w.Replicas())
	target := children.BuildRevision(w.Settings, w.Revisions)
	target.Name, target.UID, target.Revision = "now", "uid-of-now", 100
	target.Annotations = map[string]string{v1alpha1.AnnotationRevisionReady: facts.Yes, v1alpha1.AnnotationRevisionProven: facts.Yes}
	w.Revisions = []*appsv1.ControllerRevision{target}
	if w.Set.Status.CurrentRevision == "" {
		w.Set.Status.CurrentRevision = "now"
	}
	for _, t := range things {
		if _, isRevision := t.(*revisionFixture); isRevision {
			t.into(w)
		}
	}
	for _, t := range things {
		if _, isRevision := t.(*revisionFixture); !isRevision {
			t.into(w)
		}
	}
	slices.SortFunc(w.Members, func(a, b *facts.Member) int { return strings.Compare(a.Name(), b.Name()) })
	slices.SortFunc(w.Revisions, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return w
}

// with changes a finished world, for cases without a fixture.
type with func(*facts.World)

func (f with) into(w *facts.World) { f(w) }

// cached makes the world one that was read from the cache.
var cached = with(func(w *facts.World) { w.Live = false })

// freshIDsAre sets the fresh ids and records their names.
func freshIDsAre(ids ...string) thing {
	return with(func(w *facts.World) { w.Fresh, w.Set.Status.Creating = ids, w.NamesOf(ids) })
}

// offRecord removes the names of new members from the record.
var offRecord = with(func(w *facts.World) { w.Set.Status.Creating = nil })

func refused(reason, message string, wait time.Duration) thing {
	return with(func(w *facts.World) {
		w.Refused[reason] = facts.Refusal{Message: message, Until: noon.Add(wait), Times: 1}
	})
}

// updating adds the pod with that id and UID to status.updating.
func updating(id string, uid types.UID, revision string) thing {
	return with(func(w *facts.World) {
		w.Set.Status.Updating = append(w.Set.Status.Updating, v1alpha1.UpdatingMember{Name: "db-" + id, UID: uid, Revision: revision})
	})
}

type setFixture struct{ v1alpha1.StatefulCluster }

func set(name string) *setFixture {
	return &setFixture{v1alpha1.StatefulCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "uid-of-set", Generation: 7},
		Spec: v1alpha1.StatefulClusterSpec{
			Replicas:             ptr.To(int32(3)),
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template:             podTemplate("one"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{volumeClaimTemplate("data", "1Gi")},
		},
	}}
}

func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func volumeClaimTemplate(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storage(size)}}
}

func storage(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}

func cpu(amount string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
}

func (s *setFixture) replicas(n int32) *setFixture { s.Spec.Replicas = &n; return s }

func (s *setFixture) orderedReady() *setFixture {
	s.Spec.PodManagementPolicy = v1alpha1.OrderedReadyPodManagement
	return s
}

func (s *setFixture) onDelete() *setFixture {
	s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
	return s
}

func (s *setFixture) rolling(u v1alpha1.RollingUpdate) *setFixture {
	s.Spec.UpdateStrategy.RollingUpdate = &u
	return s
}

func (s *setFixture) maxUnavailable(n int) *setFixture {
	return s.rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt(n))})
}

// surge sets maxSurge, and maxUnavailable to 0.
func (s *setFixture) surge(n int) *setFixture {
	return s.rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt(0)), MaxSurge: ptr.To(intstr.FromInt(n))})
}

func (s *setFixture) maxConcurrent(v string) *setFixture {
	s.Spec.Replacement.MaxConcurrent = ptr.To(intstr.Parse(v))
	return s
}

func (s *setFixture) keepsEvicted() *setFixture {
	s.Spec.Replacement.OnEviction = v1alpha1.EvictionKeeps
	return s
}

func (s *setFixture) replacesFirst() *setFixture {
	s.Spec.Replacement.OnEviction = v1alpha1.EvictionReplacesFirst
	return s
}

func (s *setFixture) image(image string) *setFixture {
	s.Spec.Template.Spec.Containers[0].Image = image
	return s
}

func (s *setFixture) change(f func(*v1alpha1.StatefulClusterSpec)) *setFixture {
	f(&s.Spec)
	return s
}

func (s *setFixture) retention(deleted, scaled, lost v1alpha1.RetentionPolicy) *setFixture {
	s.Spec.PersistentVolumeClaimRetentionPolicy = v1alpha1.ClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled, WhenLost: lost}
	return s
}

// revisionFixture is an older revision of the set: the current spec with that change.
type revisionFixture struct {
	name    string
	number  int64
	unready bool
	change  func(*children.RevisionData)
}

func revisionOfImage(name, image string) *revisionFixture {
	return revisionWith(name, func(d *children.RevisionData) { d.Template.Spec.Containers[0].Image = image })
}

func revisionWith(name string, change func(*children.RevisionData)) *revisionFixture {
	return &revisionFixture{name: name, number: 1, change: change}
}

func (r *revisionFixture) numbered(n int64) *revisionFixture { r.number = n; return r }

func (r *revisionFixture) into(w *facts.World) {
	data := children.DataOfSpec(w.Set.Spec.DeepCopy())
	r.change(&data)
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	rev := &appsv1.ControllerRevision{Revision: r.number, Data: runtime.RawExtension{Raw: raw},
		ObjectMeta: metav1.ObjectMeta{Name: r.name, UID: types.UID("uid-of-" + r.name), Labels: children.ClusterLabels(w.Settings)}}
	if !r.unready {
		rev.Annotations = map[string]string{v1alpha1.AnnotationRevisionReady: facts.Yes, v1alpha1.AnnotationRevisionProven: facts.Yes}
	}
	w.Revisions = append(w.Revisions, rev)
}

// specNotRecorded removes the revision of the spec, as if the template were new.
var specNotRecorded = with(func(w *facts.World) {
	w.Revisions = slices.DeleteFunc(w.Revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == "now" })
})

// nowNeverReady makes no member of the spec's revision ever Ready.
var nowNeverReady = with(func(w *facts.World) {
	for _, rev := range w.Revisions {
		if rev.Name == "now" {
			rev.Annotations = nil
		}
	}
})

// nowUnproven makes the spec's revision unproven.
var nowUnproven = with(func(w *facts.World) {
	for _, rev := range w.Revisions {
		if rev.Name == "now" {
			delete(rev.Annotations, v1alpha1.AnnotationRevisionProven)
		}
	}
})

// claimFixture is a claim whose pod is gone.
type claimFixture struct {
	ID, why string
	seen    time.Duration // for how long it has been seen set aside
	record  types.UID
	change  []func(*corev1.PersistentVolumeClaim)
}

func looseClaimOf(id string) *claimFixture { return &claimFixture{ID: id, seen: time.Hour} }

// seenFor sets for how long this process has seen the claim set aside.
func (c *claimFixture) seenFor(d time.Duration) *claimFixture { c.seen = d; return c }

// setAsideUnder sets the retention policy at the time when the claim was set aside.
func (c *claimFixture) setAsideUnder(p v1alpha1.RetentionPolicy) *claimFixture {
	return c.but(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{v1alpha1.AnnotationRetention: string(p)}
	})
}

// onRecord adds the claim to status.claims as that of a member. With another UID, the record is
// about an earlier claim of that name.
func (c *claimFixture) onRecord() *claimFixture {
	return c.onRecordAs("uid-of-db-data-" + types.UID(c.ID))
}

func (c *claimFixture) onRecordAs(uid types.UID) *claimFixture { c.record = uid; return c }

func (c *claimFixture) retained(why string) *claimFixture { c.why = why; return c }

func (c *claimFixture) but(change func(*corev1.PersistentVolumeClaim)) *claimFixture {
	c.change = append(c.change, change)
	return c
}

func (c *claimFixture) into(w *facts.World) {
	for _, built := range claimsOf(w, c.ID) {
		if c.why != "" {
			built.Labels[v1alpha1.LabelRetained] = c.why
			w.Aside[built.UID] = w.Now.Add(-c.seen)
		}
		for _, f := range c.change {
			f(built)
		}
		w.Loose = append(w.Loose, built)
		if c.record != "" {
			w.Set.Status.Claims = append(w.Set.Status.Claims, v1alpha1.RecordedClaim{Name: built.Name, UID: c.record})
		}
	}
}

func claimsOf(w *facts.World, id string) map[string]*corev1.PersistentVolumeClaim {
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for i := range w.Set.Spec.VolumeClaimTemplates {
		c := children.BuildClaim(w.Settings, &w.Set.Spec.VolumeClaimTemplates[i], id)
		c.UID = types.UID("uid-of-" + c.Name)
		claims[c.Name] = c
	}
	return claims
}

// planOf returns the plan for a world.
func planOf(w *facts.World) rules.Plan { return rules.Decide(facts.Derive(w)) }

// firstWritten returns the object of the first action of the plan.
func firstWritten(w *facts.World) client.Object { return planOf(w).Steps[0][0][0].Object }

// statusOf returns the status of a world after a pass with these outcomes.
func statusOf(w *facts.World, p *rules.Plan, outcomes []action.Outcome) v1alpha1.StatefulClusterStatus {
	return status.Summarize(facts.Derive(w), p, status.Results{Outcomes: outcomes, Refused: w.Refused})
}

// row is one row of a table: a description, a world, and the expected actions.
type row struct {
	name  string
	world *facts.World
	want  []string
	// Why nothing, or no more, is done, and when the next pass is due.
	held, failing []string
	manyUnready   int
	wait          time.Duration
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := facts.Derive(r.world)
			p := rules.Decide(f)
			if got := p.Steps.Strings(); !slices.Equal(got, r.want) {
				t.Errorf("steps of rule %q are\n  %s\nwant\n  %s", p.Rule, strings.Join(got, "\n  "), strings.Join(r.want, "\n  "))
			}
			if !slices.Equal(p.Held, r.held) || !slices.Equal(p.Failing, r.failing) || f.ManyUnready != r.manyUnready {
				t.Errorf("held %q, failing %q, manyUnready %d; want %q, %q, %d", p.Held, p.Failing, f.ManyUnready, r.held, r.failing, r.manyUnready)
			}
			if p.Wait != r.wait {
				t.Errorf("requeue after %v, want %v", p.Wait, r.wait)
			}
			if again := planOf(r.world); !slices.Equal(again.Steps.Strings(), p.Steps.Strings()) {
				t.Errorf("a second plan for the same world differs:\n  %s", strings.Join(again.Steps.Strings(), "\n  "))
			}
			for _, m := range r.world.Members {
				if podstate.Ready(m.Pod) && !podstate.Scheduled(m.Pod) {
					t.Fatalf("invalid world: %s is Ready without a node", m.Name())
				}
			}
		})
	}
}

// The expected lines of the most frequent actions.
func creates(ids ...string) (lines []string) {
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("create pod db-%s: Missing > create persistentvolumeclaim db-data-%s: Claim", id, id))
	}
	return lines
}

func createsInPlaceOf(old, id string) string {
	return fmt.Sprintf("create pod db-%s: Replacement, in place of db-%s > create persistentvolumeclaim db-data-%s: Claim", id, old, id)
}

func deletesLost(id string, why v1alpha1.LossReason) string {
	return fmt.Sprintf("delete pod db-%s: %s, the member is lost and will not come back, claims db-data-%s", id, why, id)
}

func replaces(old, id string, why v1alpha1.LossReason) string {
	return deletesLost(old, why) + " > " + createsInPlaceOf(old, id)
}

func retires(ids ...string) (lines []string) {
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("patch persistentvolumeclaim db-data-%s: Retention, labeled enge.me/retained=Scaled > "+
			"delete pod db-%s: Retired, claims db-data-%s", id, id, id))
	}
	return lines
}

// recreates returns the lines of an update, which begins with a dry-run create of the first new
// pod.
func recreates(ids ...string) []string {
	return slices.Insert(restarts(ids...), 0, fmt.Sprintf("try pod db-%s: Trial, dry run before pods are deleted for the update", ids[0]))
}

func restarts(ids ...string) []string {
	lines := []string{"patch status of statefulcluster db: Update"}
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("delete pod db-%s: Update, the pod will be recreated with the same name and claims", id))
	}
	return lines
}

func updatesInPlace(ids ...string) (lines []string) {
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("patch pod db-%s: Updated, in place", id))
	}
	return lines
}

func brings(ids ...string) (lines []string) {
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("create pod db-%s: Returned, recreated with the same name and claims", id))
	}
	return lines
}
