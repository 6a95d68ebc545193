// Package configuration follows the ConfigMaps and Secrets that pod templates use, so that pods can be
// restarted when the contents change.
//
// The package determines from the template which objects and keys it uses. It hashes their contents
// with the operator's key, so that a user who can read a StatefulSet cannot verify guesses of a Secret.
// The hash is stored in the pod template, where a change restarts pods. A record in the StatefulSet
// describes the hash. With it, contents are read only if a version changed. Pods are not restarted when
// only metadata changed, when an edit was reverted, or when the operator starts to follow the
// configuration. A Limiter limits how many objects restart pods concurrently.
package configuration
