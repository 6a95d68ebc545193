package golden

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// statuses is where the statuses of situations are, seen from the folder of a kind. The
// tests there read them as tools do: kstatus, and Argo CD.
const statuses = "../../test/readiness/testdata"

// Situation is one that a person would tell of in a sentence, and what tools are to say of
// an object in it.
type Situation struct {
	// Sentence is the name of the file too.
	Sentence string
	// Kstatus is what kstatus says: Current, InProgress or Failed.
	Kstatus string
	// Argo is the health in Argo CD; "" where it follows from Kstatus.
	Argo string
}

// Check compares an object, with its status, with what was recorded of it.
func (s Situation) Check(t *testing.T, kind string, object any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if s.Argo == "" {
		s.Argo = map[string]string{"Current": "Healthy", "InProgress": "Progressing", "Failed": "Degraded"}[s.Kstatus]
	}
	file := strings.ReplaceAll(s.Sentence, " ", "-") + ".yaml"
	Check(t, filepath.Join(statuses, kind, file), fmt.Sprintf("# %s\n# kstatus: %s\n# Argo CD: %s\n%s", s.Sentence, s.Kstatus, s.Argo, text))
}
