package golden

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// statuses is the folder with the recorded statuses. The tests beside it evaluate them with kstatus and
// with the health checks of Argo CD.
const statuses = "test/readiness/testdata"

// Situation describes a state of an object, and the status that tools must show for it.
type Situation struct {
	// Sentence describes the situation. It is also used as the file name.
	Sentence string
	// Kstatus is the expected result of kstatus: Current, InProgress or Failed.
	Kstatus string
	// Argo is the expected health in Argo CD. If it is empty, it is derived from Kstatus.
	Argo string
}

// Check compares the object, including its status, with the recorded file.
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
	Check(t, inModule(t, statuses, kind, file), fmt.Sprintf("# %s\n# kstatus: %s\n# Argo CD: %s\n%s", s.Sentence, s.Kstatus, s.Argo, text))
}
