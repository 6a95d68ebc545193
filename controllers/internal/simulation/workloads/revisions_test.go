package workloads

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// revisions returns the names of the ControllerRevisions, the newest one last.
func (s *stage) revisions() (names []string) {
	for _, r := range s.look(s.set()).stored {
		names = append(names, r.Name)
	}
	return names
}

// TestRevisions tests that an earlier template gets its earlier revision, which is then the newest one.
func TestRevisions(t *testing.T) {
	s := newStage(t)
	first := s.set().Status.UpdateRevision
	s.edit(image("two"))
	s.rest()
	second := s.set().Status
	if second.UpdateRevision == first || second.CurrentRevision != second.UpdateRevision || !slices.Equal(s.revisions(), []string{first, second.UpdateRevision}) {
		t.Errorf("the status is %+v, and the revisions are %q", second, s.revisions())
	}
	s.edit(image("one"))
	if s.rest(); !slices.Equal(s.revisions(), []string{second.UpdateRevision, first}) || s.set().Status.UpdateRevision != first {
		t.Errorf("after the rollback: %q", s.revisions())
	}
	if r := s.look(s.set()).stored[0]; r.Labels["app"] != "db" || !metav1.IsControlledBy(r, s.set()) {
		t.Errorf("the revision is %+v", r)
	}
}

// TestRevisionsOfTheRealController tests that a revision with the same template is used, whatever its name.
func TestRevisionsOfTheRealController(t *testing.T) {
	s := newStage(t, onDelete)
	set := s.set()
	mine := set.Status.UpdateRevision
	theirs := objects.Clone(s.look(set).stored[0])
	s.Remove(theirs)
	theirs.Name, theirs.UID = "db-7d4b9c", "theirs"
	s.Put(theirs)
	if got := s.look(set).revision(); got != theirs.Name {
		t.Errorf("the revision is %s, want %s instead of %s", got, theirs.Name, mine)
	}
	image("two")(set)
	if got := s.look(set).revision(); got == theirs.Name || got == mine {
		t.Errorf("another template has revision %s", got)
	}
}

// TestLearnedRevisions tests a StatefulSet whose revisions are not in the cluster: the status has its revision, unless the
// spec was not observed.
func TestLearnedRevisions(t *testing.T) {
	for _, isObserved := range []bool{true, false} {
		s := newStage(t)
		for _, r := range s.look(s.set()).stored {
			s.Remove(r)
		}
		set := s.set()
		set.Status.UpdateRevision, set.Status.CurrentRevision = "db-real", "db-real"
		if !isObserved {
			set.Generation++
		}
		s.Put(set)
		s.Controller = New(s.Cluster)
		if got := s.look(s.set()).revision(); (got == "db-real") != isObserved {
			t.Errorf("observed %t: the revision is %s", isObserved, got)
		}
	}
}

// TestHistory tests that only old revisions that nothing has are deleted.
func TestHistory(t *testing.T) {
	s := newStage(t, onDelete, func(set *appsv1.StatefulSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](1) })
	first := s.set().Status.UpdateRevision
	for _, name := range []string{"two", "three", "four", "five"} {
		s.edit(image(name))
		s.rest()
	}
	got := s.revisions()
	if len(got) != 3 || got[0] != first || got[2] != s.set().Status.UpdateRevision {
		t.Errorf("the revisions are %q; the pods have %s", got, first)
	}
}

// TestUnreadableRevisions tests that a ControllerRevision of another client is ignored.
func TestUnreadableRevisions(t *testing.T) {
	s := newStage(t)
	bad := objects.Clone(s.look(s.set()).stored[0])
	bad.Name, bad.UID, bad.Data.Raw, bad.Revision = "db-bad", "bad", []byte("{"), 9
	s.Put(bad)
	if s.rest(); s.set().Status.UpdateRevision == bad.Name || s.templateIn(bad) != nil {
		t.Errorf("the status is %+v", s.set().Status)
	}
}
