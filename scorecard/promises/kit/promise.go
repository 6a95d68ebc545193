// Package kit provides promises of all kinds with the cluster in which they are tested: its
// expectations, objects, nodes and operator.
package kit

import (
	"context"
)

// Promise is one behavior that users rely on.
type Promise struct {
	// Name begins with the number of the acceptance that it covers.
	Name string
	// Faults is true if the promise needs control of the nodes: to disconnect or power off nodes,
	// or to read their files from outside, as the observer of a witness does.
	Faults bool
	// Scribed is true if a scribe can replace the access to the nodes' files.
	Scribed bool
	// Site is the cluster of the promise: SharedSite runs many promises at the same time, other
	// sites run them one after another on a cluster whose nodes, API server or operator they may
	// disturb.
	Site Site
	// Long is true if the promise takes minutes. A long scorecard test is not part of the core by
	// default.
	Long bool
	// Core is true if the promise is tested with each change, in addition to the scorecard's tests.
	// All promises are tested each night.
	Core bool
	// Run tests the promise. Its expectations of the cluster are the promise.
	Run func(context.Context, *Cluster)
}

// Site is the name of a cluster for promises that can share it. Sites run concurrently, each on its
// own cluster.
type Site string

const (
	// SharedSite is for promises that disturb neither nodes nor the operator. Many of them run at
	// the same time, on any cluster.
	SharedSite Site = "shared"
	// NodeSite is for promises that disconnect, power off, taint or fill nodes, or stop the API
	// server.
	NodeSite Site = "nodes"
	// OperatorSite is for promises that kill, stop, freeze or reconfigure the operator.
	OperatorSite Site = "operator"
)

// Alone lists the sites whose promises run one after another.
var Alone = []Site{NodeSite, OperatorSite}

// Beside returns a promise that can run at the same time as others, on any cluster.
func Beside(name string, run func(context.Context, *Cluster)) Promise {
	return Promise{Name: name, Site: SharedSite, Run: run}
}

// Long marks a promise that takes minutes.
func Long(p Promise) Promise {
	p.Long = true
	return p
}

// Core marks a promise that is tested with each change.
func Core(p Promise) Promise {
	p.Core = true
	return p
}

// Scribed marks a promise whose programs may report to a scribe.
func Scribed(p Promise) Promise {
	p.Scribed = true
	return p
}

// Together returns a promise whose programs must not overlap. It can run beside
// others.
func Together(name string, keep func(context.Context, *Cluster)) Promise {
	return Promise{Name: name, Faults: true, Site: SharedSite, Run: Witnessed(keep)}
}
