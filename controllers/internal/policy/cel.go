package policy

import "fmt"

// AnnotationCEL returns the CEL expression of the value of an annotation of an object, or "".
func AnnotationCEL(object, name string) string {
	annotations := object + `.metadata.annotations`
	return fmt.Sprintf(`(has(%[1]s) && %[2]q in %[1]s ? %[1]s[%[2]q] : "")`, annotations, name)
}
