// Package rules decides the actions of a pass. It is pure.
//
// rules.go lists the rules in order. A rule that "keeps" objects creates missing ones, reverts edits of
// other clients, and deletes those that are no longer wanted, if its kind of object may be deleted.
// handover.go assigns the ordinals of a zone to the StatefulSets of its versions, for the rule in
// children.go.
//
// A rule that cannot act yet calls Plan.waitFor with the event that it waits for, for example "pod
// web-v1-2 is deleted". The text follows "waiting until" in a condition. Many functions return such a
// text; "" then means that there is nothing to wait for.
package rules
