package main

// rule is the name of a rule of the model. endsItself and those with Bound, First, Fresh, After and WholeTime are rules
// of the model in controllers/internal/fencing. The other ones are conditions of its moves, or its guarantee.
type rule string

// The rules.
const (
	createdFree        rule = "createdFree"
	writtenByOperator  rule = "writtenByOperator"
	renewedByHolder    rule = "renewedByHolder"
	itsFields          rule = "itsFields"
	renewalBound       rule = "renewalBound"
	handoverBound      rule = "handoverBound"
	takeoverBound      rule = "takeoverBound"
	assignmentBound    rule = "assignmentBound"
	namingBound        rule = "namingBound"
	handoverNamed      rule = "handoverNamed"
	epochsIncrease     rule = "epochsIncrease"
	watchesWholeTime   rule = "watchesWholeTime"
	everyVersionLogged rule = "everyVersionLogged"
	heldAtStart        rule = "heldAtStart"
	renewsFirst        rule = "renewsFirst"
	startsWithFresh    rule = "startsWithFresh"
	endsItself         rule = "endsItself"
	handsOverAfter     rule = "handsOverAfter"
	oneProgram         rule = "oneProgram"
)

// rules are all rules, with their meaning.
var rules = []struct {
	name    rule
	meaning string
}{
	{createdFree, "a new Lease has no holder, or that of the Lease that it replaces"},
	{writtenByOperator, "only the operator creates a Lease, assigns it, frees it, and names a successor"},
	{renewedByHolder, "only the pod that a Lease names renews it"},
	{itsFields, "a write changes only the fields of its move"},
	{renewalBound, "a renewal is bound to the version that it replaces"},
	{handoverBound, "and so is a handover"},
	{takeoverBound, "and a write by which the operator removes a holder"},
	{assignmentBound, "and its choice of the next holder"},
	{namingBound, "and its choice of a successor"},
	{handoverNamed, "a holder hands over to the successor that the operator has named"},
	{epochsIncrease, "each new holder has a higher epoch"},
	{watchesWholeTime, "the operator removes a holder whose pod has not ended only if the Lease has not changed for its duration"},
	{everyVersionLogged, "each version that changes the holder or the epoch is in the audit log"},
	{heldAtStart, "a program starts while the Lease names its pod with its epoch"},
	{renewsFirst, "the agent renews the Lease before it starts the program"},
	{startsWithFresh, "a renewal that is older than 2/3 of the duration does not start the program"},
	{endsItself, "the agent ends its program when no renewal has succeeded for 2/3 of the duration"},
	{handsOverAfter, "the agent hands over when its program has ended"},
	{oneProgram, "the programs of two pods do not run at the same time"},
}
