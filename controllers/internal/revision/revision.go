// Package revision keeps the history of a template in ControllerRevisions, as StatefulSet and DaemonSet
// do. When a template is changed back, its old revision is found and used again.
package revision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
)

// New returns a new revision for data. Its name is prefix and a hash of data, salt and collisions. The
// salt is the UID of the owner, which avoids conflicts with revisions of a deleted owner of the same
// name. The caller increments collisions when a different revision already has the name. The revision
// number is one above the highest number in history.
func New(prefix, salt string, data any, collisions int32, history []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode the revision: %w", err)
	}
	// The API server sorts the keys when it applies a patch. It would then reject the revision, because
	// the data of a ControllerRevision is immutable.
	raw = normal(raw, false)
	sum := fnv.New32a()
	_, _ = sum.Write(raw)
	_, _ = sum.Write([]byte(salt))
	_, _ = sum.Write([]byte(strconv.FormatInt(int64(collisions), 10)))
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: prefix + "-" + rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10))},
		Data:       runtime.RawExtension{Raw: raw},
		Revision:   highest(history) + 1,
	}, nil
}

// Same returns the revision with the same data as want, or nil if there is none.
func Same(history []*appsv1.ControllerRevision, want *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	for _, r := range history {
		if bytes.Equal(normal(r.Data.Raw, true), normal(want.Data.Raw, true)) {
			return r
		}
	}
	return nil
}

// Latest reports whether r has the highest revision number in history.
func Latest(history []*appsv1.ControllerRevision, r *appsv1.ControllerRevision) bool {
	return r.Revision == highest(history)
}

// Promote returns a copy of r with a revision number above all others in history, as for a rollback.
func Promote(history []*appsv1.ControllerRevision, r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	r = r.DeepCopy()
	r.Revision = highest(history) + 1
	return r
}

// Surplus returns the oldest unused revisions beyond limit.
func Surplus(history []*appsv1.ControllerRevision, limit int, inUse func(name string) bool) []*appsv1.ControllerRevision {
	var idle []*appsv1.ControllerRevision
	for _, r := range history {
		if !inUse(r.Name) {
			idle = append(idle, r)
		}
	}
	slices.SortFunc(idle, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return idle[:max(0, len(idle)-limit)]
}

// ByName returns the revision with the given name, or nil if there is none.
func ByName(history []*appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	for _, r := range history {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// highest returns the highest revision number in history; 0 if it is empty.
func highest(history []*appsv1.ControllerRevision) int64 {
	var top int64
	for _, r := range history {
		top = max(top, r.Revision)
	}
	return top
}

// Digest returns the SHA-256 of data in hexadecimal, which is 64 characters. It hashes the JSON of data
// with sorted keys and without empty values, so data that Same treats as equal have equal digests.
func Digest(data any) (string, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("encode the data: %w", err)
	}
	sum := sha256.Sum256(normal(raw, true))
	return hex.EncodeToString(sum[:]), nil
}

// normal sorts the keys of JSON. With dropEmpty it also removes nulls and empty objects. A later
// version of the Kubernetes types may omit such fields, which must not create a new revision of an
// unchanged template.
func normal(raw []byte, dropEmpty bool) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	if dropEmpty {
		v = withoutEmpty(v)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// isEmpty reports whether a value is null or an empty object.
func isEmpty(v any) bool {
	m, isMap := v.(map[string]any)
	return v == nil || (isMap && len(m) == 0)
}

// withoutEmpty removes nulls and empty objects from all objects in v.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e = withoutEmpty(e); isEmpty(e) {
				delete(v, k)
				continue
			}
			v[k] = e
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}
