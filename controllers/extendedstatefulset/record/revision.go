package record

import (
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// revisionDigits is the number of digest digits in the name of a revision. It is large enough that no
// other content with the same digits can be found.
const revisionDigits = 16

// RevisionName returns the name of a version, made of its number and its content. A number is used once
// in the lifetime of an object. The content distinguishes versions of an object that was deleted and
// recreated. "" means none.
func RevisionName(number int64, digest string) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("v%d-%s", number, excerpt.Of(digest, revisionDigits))
}

// UpdateRevision returns the revision of the upgrade in a status, or the current revision if there is
// no upgrade.
func UpdateRevision(s *v1alpha1.ExtendedStatefulSetStatus) string {
	if s.Update == nil {
		return RevisionName(s.CurrentVersion, s.CurrentDigest)
	}
	return RevisionName(s.UpdateVersion, s.Update.Digest)
}
