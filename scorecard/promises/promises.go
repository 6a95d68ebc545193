// Package promises lists what each kind promises its users. Each promise is a function that tests
// it on a real cluster. `go test ./scorecard/...` and the custom scorecard tests run them.
package promises

import (
	"github.com/stateful-operator/stateful-operator/scorecard/promises/extended"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/operator"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/replicated"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/singleton"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/statefulcluster"
)

// List is a list of promises with the same label.
type List struct {
	Label    string
	Promises []kit.Promise
}

// Lists are all promises. Use the labels, or the names of scorecard tests, in
// `-ginkgo.label-filter`.
var Lists = []List{
	{"StatefulCluster", statefulcluster.Promises},
	{"ReplicatedStatefulSet", replicated.Promises},
	{"ExtendedStatefulSet", extended.Promises},
	{"StatefulSingleton", singleton.Promises},
	{"operator", operator.Freeze},
	{"operator", operator.Backup},
	{"operator", operator.Plans},
}
