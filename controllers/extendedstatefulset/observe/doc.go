// Package observe reads the cluster for a pass.
package observe
