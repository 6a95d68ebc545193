// Package backup says of an object whether it comes out of a backup.
package backup

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Label is what Velero puts on all that it restores: the name of the backup.
const Label = "velero.io/backup-name"

// Of is the name of the backup that an object comes out of; "" if it comes out of none.
func Of(object metav1.Object) string { return object.GetLabels()[Label] }
