package facts

import "strings"

// Reasons of actions.
const (
	ReasonKeep     = "Keep"     // adds our finalizer to the object
	ReasonRelease  = "Release"  // removes our finalizer from the object or a pod
	ReasonProtect  = "Protect"  // adds our finalizer to a pod
	ReasonLearned  = "Learned"  // stores changes of grants and commands
	ReasonRole     = "Role"     // sets the labels of a pod
	ReasonChild    = "Child"    // creates or repairs a child
	ReasonForeign  = "Foreign"  // removes our labels from a pod that is not a member
	ReasonAgent    = "Agent"    // stores the agent for the pods of spec.application
	ReasonLease    = "Lease"    // writes the Lease of a member, or the rights on it
	ReasonExpired  = "Expired"  // takes over the Lease of a member that has not been renewed
	ReasonBudget   = "Budget"   // closes the budget for a handover
	ReasonTemplate = "Template" // changes the StatefulSet's template
	ReasonScale    = "Scale"    // changes the StatefulSet's replicas
	ReasonExpand   = "Expand"   // grows a claim
	ReasonLeft     = "Left"     // deletes a claim with the object
	ReasonOverride = "Override" // completes an order
	ReasonRefused  = "Refused"  // refuses an order
	ReasonAsk      = "Ask"      // sends status or sequence
	ReasonUnseen   = "Unseen"   // deletes a pod because of a command with an unknown outcome
	ReasonStray    = "Stray"    // deletes a pod that a command for another container may have reached
	ReasonFailed   = "Failed"   // deletes a pod because of failed starts or stops
	ReasonFenced   = "Fenced"   // deletes a pod whose machine is off
	ReasonRenew    = "Renew"    // deletes a pod to recreate it from the current template
	ReasonSurplus  = "Surplus"  // deletes a pod after a scale-down
	ReasonTrial    = "Trial"    // dry run of the create of a pod, before the pod is deleted
	ReasonResize   = "Resize"   // changes the resources of a pod in place
	ReasonInPlace  = "InPlace"  // marks a pod that is changed in place
	ReasonResized  = "Resized"  // marks a pod that was updated to the current template in place

	ReasonUnresponsive = "Unresponsive" // deletes the pod of a member that blocks a failover
)

// ReasonOf returns the reason of the action that sends a command: Seed, Primary, ...
func ReasonOf(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
