package rules

import (
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
)

// keepRecord stops the pass if the record must be written first.
func keepRecord(f *facts.Facts, p *Plan) {
	if record.SameRecord(&f.Set.Status, f.Record) {
		return
	}
	p.RecordFirst = true
	p.Stop()
}
