package rules_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
)

// TestTheRecordIsWrittenFirst checks that a pass with another record does nothing else, even if a
// StatefulSet is missing.
func TestTheRecordIsWrittenFirst(t *testing.T) {
	changed := fixture.Of(fixture.Zoned(3, "a", "b")).Has(1, children.Span{Start: 0, Replicas: 3}).Edited().W
	f, p := fixture.Decided(changed)
	if !p.RecordFirst || p.Acts() > 0 {
		t.Errorf("the record is written: %t; the steps are %q", p.RecordFirst, p.Steps.Strings())
	}
	changed.Set.Status = *f.Record
	written := rules.Decide(&facts.Facts{World: changed, Record: f.Record})
	if written.RecordFirst || written.Acts() == 0 {
		t.Errorf("the record is written again: %t; the steps are %q", written.RecordFirst, written.Steps.Strings())
	}
}
