package extended

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Rules that hold for the pods of a set at any moment.

// serving reports whether a pod of the set counts for its capacity.
func serving(p *corev1.Pod, set string) bool {
	return ofSet(p, set) && p.DeletionTimestamp == nil && kit.PodCondition(p, corev1.PodReady)
}

func ofSet(p *corev1.Pod, set string) bool {
	return p.Labels[v1alpha1.LabelSet] == set && p.Labels[batchv1.JobNameLabel] == ""
}

// least returns a check that at least that many pods of the set are Ready.
func least(set string, want int) func(map[types.UID]*corev1.Pod) error {
	return func(pods map[types.UID]*corev1.Pod) error {
		have := 0
		for _, p := range pods {
			if serving(p, set) {
				have++
			}
		}
		if have < want {
			return fmt.Errorf("%d pods of %s are Ready, want at least %d: %s", have, set, want, roll(pods, set))
		}
		return nil
	}
}

// roll describes the pods of a set.
func roll(pods map[types.UID]*corev1.Pod, set string) string {
	var words []string
	for _, p := range pods {
		if !ofSet(p, set) {
			continue
		}
		word := p.Name + " " + string(p.Status.Phase)
		if kit.PodCondition(p, corev1.PodReady) {
			word += " Ready"
		}
		if p.DeletionTimestamp != nil {
			word += " deleted"
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// claimsApart checks that no claim has two pods that have not ended.
func claimsApart(pods map[types.UID]*corev1.Pod) error {
	holder := map[string]string{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			claim := v.PersistentVolumeClaim.ClaimName
			if other := holder[claim]; other != "" {
				return fmt.Errorf("%s and %s hold claim %s", other, p.Name, claim)
			}
			holder[claim] = p.Name
		}
	}
	return nil
}

// count returns the number of pods for which is returns true.
func count(pods map[types.UID]*corev1.Pod, is func(*corev1.Pod) bool) int {
	n := 0
	for _, p := range pods {
		if is(p) {
			n++
		}
	}
	return n
}
