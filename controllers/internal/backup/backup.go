// Package backup detects objects that were restored from a backup.
package backup

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Label is the label that Velero adds to restored objects. Its value is the name of the backup.
const Label = "velero.io/backup-name"

// Of returns the name of the backup from which an object was restored; "" if there is none.
func Of(object metav1.Object) string { return object.GetLabels()[Label] }
