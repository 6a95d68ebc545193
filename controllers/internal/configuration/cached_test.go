package configuration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestW20RecreatedSources(t *testing.T) {
	config := Origin{KindConfigMap, "web"}
	with := func(uid string, immutable bool) State {
		s := State{Key: "k", Seen: uid, Hash: uid}
		s.note(config, edition{uid, "1"}, immutable)
		return s
	}
	record := func(s State) *Record { r := s.Record(); return ParseRecord(r.String()) }
	cached := record(with("b", true))
	cached.Recreated, cached.Cached = []string{"ConfigMap web"}, []types.UID{"p"}
	for _, row := range []struct {
		name string
		was  *Record
		is   State
		want []string
	}{
		{"W20 an immutable ConfigMap with another UID was recreated", record(with("a", true)), with("b", true), []string{"ConfigMap web"}},
		{"W20 an immutable ConfigMap was recreated as mutable", record(with("a", true)), with("b", false), []string{"ConfigMap web"}},
		{"W20 a mutable ConfigMap was recreated, which kubelets follow", record(with("a", false)), with("b", true), nil},
		{"W20 the UID did not change", record(with("a", true)), with("a", true), nil},
		{"W20 a deleted ConfigMap was not recreated", record(with("a", true)), State{Hash: "x"}, nil},
		{"W20 a recreated ConfigMap is stored while pods have old contents", cached, with("b", true), []string{"ConfigMap web"}},
		{"W20 no earlier state is known", nil, with("b", true), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.is.RecordAfter(row.was).Recreated; !slices.Equal(got, row.want) {
				t.Errorf("recreated objects: %q", got)
			}
		})
	}
}

func TestW20PodsWithOldContents(t *testing.T) {
	at := func(name, node, hash string, age time.Duration) Pod {
		return Pod{UID: types.UID(name), Name: name, Node: node, Hash: hash, Created: noon.Add(-age)}
	}
	for _, row := range []struct {
		name   string
		record Record
		pods   []Pod
		want   string
	}{
		{"W20 a pod starts on a node with an old pod", Record{Hash: "new", Recreated: []string{"x"}}, []Pod{at("a", "n1", "new", 1), at("b", "n1", "old", 9)}, "a"},
		{"W20 the old pod is on another node", Record{Hash: "new", Recreated: []string{"x"}}, []Pod{at("a", "n1", "new", 1), at("b", "n2", "old", 9)}, ""},
		{"W20 the pod is not scheduled yet", Record{Hash: "new", Recreated: []string{"x"}}, []Pod{at("a", "", "new", 1), at("b", "", "old", 9)}, ""},
		{"W20 a pod starts on a node with a pod that has old contents", Record{Hash: "new", Recreated: []string{"x"}, Cached: []types.UID{"a"}}, []Pod{at("a", "n1", "new", 5), at("b", "n1", "new", 1)}, "a b"},
		{"W20 a pod that started before the recreation is not listed", Record{Hash: "new", Recreated: []string{"x"}, Cached: []types.UID{"a"}}, []Pod{at("a", "n1", "new", 1), at("b", "n1", "new", 5)}, "a"},
		{"W20 a deleted pod is removed from the list", Record{Hash: "new", Recreated: []string{"x"}, Cached: []types.UID{"a"}}, []Pod{at("b", "n1", "new", 5)}, ""},
		{"W20 pods were replaced unseen, one after the other", Record{Hash: "new", Recreated: []string{"x"}, Before: map[string]string{"a": "n1", "b": "n1"}}, []Pod{at("a", "n1", "new", 5), at("b", "n1", "new", 1)}, "a b"},
		{"W20 the earlier pods were on other nodes", Record{Hash: "new", Recreated: []string{"x"}, Before: map[string]string{"a": "n2", "b": "n2"}}, []Pod{at("a", "n1", "new", 5), at("b", "n1", "new", 1)}, ""},
		{"W20 pods were replaced unseen at the same time", Record{Hash: "new", Recreated: []string{"x"}, Before: map[string]string{"a": "n1", "b": "n1"}}, []Pod{at("a", "n1", "new", 5), at("b", "n1", "new", 5)}, ""},
		{"W20 nothing was recreated", Record{Hash: "new"}, []Pod{at("a", "n1", "new", 1), at("b", "n1", "old", 9)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := row.record.WithCached(row.pods)
			var names []string
			for _, uid := range got.Cached {
				names = append(names, string(uid))
			}
			if strings.Join(names, " ") != row.want {
				t.Errorf("got %q", names)
			}
			if said := got.CachedMessage("ns", row.pods); (said == "") != (row.want == "") || !strings.Contains(said, row.want) {
				t.Errorf("message %q", said)
			}
		})
	}
}

// TestW20ReplacedPodsAreRemembered checks that pods are listed although no pass saw them beside the earlier ones,
// and that pods which are created together later are not.
func TestW20ReplacedPodsAreRemembered(t *testing.T) {
	pods := func(hash string, first, second time.Duration) []Pod {
		at := func(name string, age time.Duration) Pod {
			return Pod{UID: types.UID(name + hash + age.String()), Name: name, Node: "n1", Hash: hash, Created: noon.Add(-age)}
		}
		return []Pod{at("a", first), at("b", second)}
	}
	r := Record{Hash: "new", Recreated: []string{"x"}}
	for _, pass := range []struct {
		name           string
		pods           []Pod
		before, cached int
	}{
		{"before the restart", pods("old", 99*time.Second, 98*time.Second), 2, 0},
		{"after it", pods("new", 9*time.Second, 5*time.Second), 0, 2},
		{"after all were deleted", nil, 0, 0},
		{"after they were created again", pods("new", 3*time.Second, time.Second), 0, 0},
	} {
		if r = r.WithCached(pass.pods); len(r.Before) != pass.before || len(r.Cached) != pass.cached {
			t.Errorf("%s: the earlier nodes are %v, and the pods with old contents %v", pass.name, r.Before, r.Cached)
		}
	}
}
