package facts_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

func trackedSet(change ...func(*v1alpha1.ExtendedStatefulSet)) *v1alpha1.ExtendedStatefulSet {
	set := &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "set", Finalizers: []string{v1alpha1.Finalizer}}}
	set.Spec.UpdateOnEnvChange, set.Spec.ConfigTracking = true, v1alpha1.TrackByOwnerReference
	for _, c := range change {
		c(set)
	}
	return set
}

func metadata(kind, name string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	m := configuration.Metadata(kind)
	m.Namespace, m.Name, m.UID, m.OwnerReferences = "ns", name, types.UID(kind+name), owners
	return m
}

func ownerOf(kind, name string) metav1.OwnerReference {
	version := "v1"
	if kind == v1alpha1.Kind {
		version = v1alpha1.GroupVersion.String()
	}
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name)}
}

func owners(o metav1.Object) string {
	var names []string
	for _, r := range o.GetOwnerReferences() {
		names = append(names, r.Kind+" "+string(r.UID))
	}
	if o.GetAnnotations()[v1alpha1.AnnotationGuard] != "" {
		names = append(names, "guarded")
	}
	return strings.Join(names, ", ")
}

func withGuard(m *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationGuard, "true")
	return m
}

func TestE13E15OwnerReferences(t *testing.T) {
	ours, space := ownerOf(v1alpha1.Kind, "set"), ownerOf("Namespace", "space")
	friend, sibling := ownerOf("Service", "friend"), ownerOf(v1alpha1.Kind, "sibling")
	off := func(s *v1alpha1.ExtendedStatefulSet) { s.Spec.UpdateOnEnvChange = false }
	byIndex := func(s *v1alpha1.ExtendedStatefulSet) { s.Spec.ConfigTracking = v1alpha1.TrackByIndex }
	goes := func(s *v1alpha1.ExtendedStatefulSet) { s.DeletionTimestamp = &metav1.Time{Time: fixture.Noon} }
	bare := func(s *v1alpha1.ExtendedStatefulSet) { s.Finalizers = nil }
	for _, row := range []struct {
		sentence string
		set      *v1alpha1.ExtendedStatefulSet
		object   *metav1.PartialObjectMetadata
		want     string // owners after the write; "-" means no write
	}{
		{"a used object", trackedSet(), metadata(configuration.KindSecret, "used"), "Namespace space, ExtendedStatefulSet set, guarded"},
		{"a used object of another owner", trackedSet(), metadata(configuration.KindSecret, "used", friend), "Service friend, Namespace space, ExtendedStatefulSet set, guarded"},
		{"a used object with an owner reference to the namespace", trackedSet(), metadata(configuration.KindSecret, "used", space), "Namespace space, ExtendedStatefulSet set"},
		{"a used object whose guard was removed", trackedSet(), metadata(configuration.KindSecret, "used", ours), "ExtendedStatefulSet set, Namespace space, guarded"},
		{"a used object with all references", trackedSet(), withGuard(metadata(configuration.KindSecret, "used", space, ours)), "-"},
		{"a used object before the finalizer is set", trackedSet(bare), metadata(configuration.KindSecret, "used"), "-"},
		{"a terminating object", trackedSet(), func() *metav1.PartialObjectMetadata {
			m := metadata(configuration.KindSecret, "used")
			m.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
			return m
		}(), "-"},
		{"an object of another kind with the same name", trackedSet(), metadata(configuration.KindConfigMap, "used"), "-"},
		{"an unused object", trackedSet(), withGuard(metadata(configuration.KindSecret, "dropped", friend, space, ours)), "Service friend"},
		{"an unused object that another set uses", trackedSet(), withGuard(metadata(configuration.KindSecret, "dropped", space, sibling, ours)), "Namespace space, ExtendedStatefulSet sibling, guarded"},
		{"an unused object with an earlier owner reference to the namespace", trackedSet(), metadata(configuration.KindSecret, "dropped", space, ours), "Namespace space"},
		{"configTracking is off", trackedSet(off), withGuard(metadata(configuration.KindSecret, "used", space, ours)), ""},
		{"configTracking is by index", trackedSet(byIndex), withGuard(metadata(configuration.KindSecret, "used", space, ours)), ""},
		{"the set is terminating", trackedSet(goes), withGuard(metadata(configuration.KindSecret, "used", space, ours)), ""},
		{"the set is terminating, and the garbage collector removed its owner reference", trackedSet(goes), withGuard(metadata(configuration.KindSecret, "used", space)), ""},
		{"the set is terminating, and the object has no owner reference to it", trackedSet(goes), metadata(configuration.KindSecret, "used", space), "-"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			before := row.object.DeepCopy()
			track := &facts.Tracking{Set: row.set, Origins: []configuration.Origin{{Kind: configuration.KindSecret, Name: "used"}}, Objects: []*metav1.PartialObjectMetadata{row.object}, Namespace: "space"}
			chains := track.Chains()
			if owners(row.object) != owners(before) {
				t.Error("the object that was read was changed")
			}
			if len(chains) == 0 {
				if row.want != "-" {
					t.Errorf("got no write, want %s", row.want)
				}
				return
			}
			write := chains[0][0]
			if got := owners(write.Object); got != row.want || !write.Unchanged {
				t.Errorf("got owners %q, want %q; with resourceVersion: %v", got, row.want, write.Unchanged)
			}
		})
	}
}

func TestE13TheReferenceIsAsSpecified(t *testing.T) {
	track := &facts.Tracking{Set: trackedSet(), Origins: []configuration.Origin{{Kind: configuration.KindSecret, Name: "used"}}, Objects: []*metav1.PartialObjectMetadata{metadata(configuration.KindSecret, "used")}, Namespace: "space"}
	refs := track.Chains()[0][0].Object.GetOwnerReferences()
	r := refs[len(refs)-1]
	if r.APIVersion != "fissile.cloudfoundry.org/v1alpha1" || r.Kind != "ExtendedStatefulSet" || r.Name != "db" || r.UID != "set" ||
		r.Controller == nil || *r.Controller || r.BlockOwnerDeletion == nil || !*r.BlockOwnerDeletion {
		t.Errorf("got owner reference %+v", r)
	}
}

func TestTheFinalizerGoesOnFirstAndOffLast(t *testing.T) {
	object := metadata(configuration.KindSecret, "used")
	set := trackedSet(func(s *v1alpha1.ExtendedStatefulSet) { s.Finalizers = nil })
	track := &facts.Tracking{Set: set, Origins: []configuration.Origin{{Kind: configuration.KindSecret, Name: "used"}}, Objects: []*metav1.PartialObjectMetadata{object}, Namespace: "space"}
	if !track.NeedsFinalizer() || len(track.Chains()) > 0 {
		t.Error("an owner reference is written before the finalizer")
	}
	goes := trackedSet(func(s *v1alpha1.ExtendedStatefulSet) { s.DeletionTimestamp = &metav1.Time{Time: fixture.Noon} })
	tracked := withGuard(metadata(configuration.KindSecret, "used", ownerOf("Namespace", "space"), ownerOf(v1alpha1.Kind, "set")))
	track = &facts.Tracking{Set: goes, Objects: []*metav1.PartialObjectMetadata{tracked}}
	if track.NeedsNoFinalizer() || len(track.Chains()) != 1 {
		t.Error("the finalizer is removed before the owner references")
	}
	track.Objects = nil
	if !track.NeedsNoFinalizer() {
		t.Error("the finalizer is kept without owner references")
	}
	if got := track.Finalizer(false)[0].Object.GetFinalizers(); len(got) > 0 {
		t.Errorf("got finalizers %v", got)
	}
}

// TestE17NoOrderOfEventsTakesAUsersObject verifies E17: it runs steps of the operator, the user and the
// garbage collector in random order, with all ways of deleting the set, edits, an operator that is
// down, and a manually removed finalizer. The garbage collector acts as in Kubernetes: it deletes an
// object without a solid owner, and otherwise removes references to owners that are not solid.
func TestE17NoOrderOfEventsTakesAUsersObject(t *testing.T) {
	for seed := range int64(3000) {
		g := newGarden(seed)
		for range 40 {
			g.step()
			if g.taken {
				t.Fatalf("seed %d: the object was deleted\n%s", seed, strings.Join(g.story, "\n"))
			}
		}
	}
}

func TestTheGardenTakesWhatIsNotGuarded(t *testing.T) {
	taken := false
	for seed := range int64(300) {
		g := newGarden(seed)
		g.unguarded = true
		for range 40 {
			g.step()
		}
		taken = taken || g.taken
	}
	if !taken {
		t.Error("the garbage collector of this test never deletes an object, so the test proves nothing")
	}
}

// garden has a set, a Secret of a user, and a garbage collector.
type garden struct {
	*rand.Rand
	set        *v1alpha1.ExtendedStatefulSet
	gone       bool // the set was deleted
	secret     *metav1.PartialObjectMetadata
	seenByUs   *metav1.PartialObjectMetadata // an outdated cache
	seenByThem *metav1.PartialObjectMetadata
	taken      bool
	unguarded  bool
	story      []string
}

func newGarden(seed int64) *garden {
	g := &garden{Rand: rand.New(rand.NewSource(seed)), set: trackedSet(), secret: metadata(configuration.KindSecret, "used")}
	g.secret.ResourceVersion = "1"
	g.seenByUs, g.seenByThem = g.secret.DeepCopy(), g.secret.DeepCopy()
	return g
}

func (g *garden) tell(format string, args ...any) {
	g.story = append(g.story, fmt.Sprintf(format, args...)+": "+owners(g.secret))
}

func (g *garden) write(o *metav1.PartialObjectMetadata, read string) {
	if read != g.secret.ResourceVersion {
		return // conflict
	}
	g.secret = o.DeepCopy()
	g.secret.ResourceVersion = read + "1"
}

func (g *garden) step() {
	switch g.Intn(9) {
	case 0:
		g.seenByUs = g.secret.DeepCopy()
	case 1:
		g.seenByThem = g.secret.DeepCopy()
	case 2, 3, 4:
		g.operator()
	case 5, 6:
		g.collect()
	case 7:
		g.user()
	case 8:
		if g.set.DeletionTimestamp != nil && len(g.set.Finalizers) == 0 {
			g.gone = true
			g.tell("the set is deleted")
		}
	}
}

func (g *garden) operator() {
	if g.gone {
		return
	}
	seen := g.seenByUs
	track := &facts.Tracking{Set: g.set, Origins: []configuration.Origin{{Kind: configuration.KindSecret, Name: "used"}}, Namespace: "space"}
	if !track.WantsReferences() {
		seen = g.secret // a live read
	}
	if track.Concerns(seen) {
		track.Objects = append(track.Objects, seen)
	}
	switch chains := track.Chains(); {
	case track.NeedsFinalizer():
		g.set = track.Finalizer(true)[0].Object.(*v1alpha1.ExtendedStatefulSet)
	case len(chains) > 0:
		o := chains[0][0].Object.(*metav1.PartialObjectMetadata).DeepCopy()
		if g.unguarded {
			o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, facts.ToNamespace)
		}
		g.write(o, seen.ResourceVersion)
		g.tell("the operator writes")
	case track.NeedsNoFinalizer():
		g.set = track.Finalizer(false)[0].Object.(*v1alpha1.ExtendedStatefulSet)
		g.tell("the operator removes the finalizer")
	}
}

func (g *garden) user() {
	set := g.set.DeepCopy()
	switch g.Intn(6) {
	case 0:
		set.Spec.UpdateOnEnvChange = !set.Spec.UpdateOnEnvChange
	case 1:
		set.Finalizers = slices.DeleteFunc(set.Finalizers, func(f string) bool { return f == v1alpha1.Finalizer && g.Intn(4) == 0 })
	default:
		if set.DeletionTimestamp == nil {
			set.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
			how := []string{"", metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents}[g.Intn(3)]
			if how != "" {
				set.Finalizers = append(set.Finalizers, how)
			}
			g.tell("deleted %s", how)
		}
	}
	g.set = set
}

// collect runs the garbage collector for the Secret and for the set.
func (g *garden) collect() {
	waits := !g.gone && slices.Contains(g.set.Finalizers, metav1.FinalizerDeleteDependents)
	orphans := !g.gone && slices.Contains(g.set.Finalizers, metav1.FinalizerOrphanDependents)
	latest := g.secret.DeepCopy() // it decides with a live read
	var solid, rest []metav1.OwnerReference
	for _, r := range latest.OwnerReferences {
		if r.Kind == "Namespace" || !g.gone && !waits && !orphans {
			solid = append(solid, r)
		} else {
			rest = append(rest, r)
		}
	}
	switch {
	case len(rest) == 0:
	case len(solid) > 0 || orphans:
		latest.OwnerReferences = solid
		g.write(latest, g.secret.ResourceVersion)
		g.tell("the garbage collector removes owner references")
	default:
		g.taken = true
		g.tell("the garbage collector deletes the object")
		return
	}
	set := g.set.DeepCopy() // it sees no remaining dependent
	if !slices.ContainsFunc(g.seenByThem.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == set.UID }) {
		set.Finalizers = slices.DeleteFunc(set.Finalizers, func(f string) bool { return f != v1alpha1.Finalizer })
		g.set = set
	}
}
