// Package decode decodes the parts of an object. A value that does not fit its Go type is reported
// as data, not as an error.
//
// The API server checks an object against a schema, and does not decode it into our types. A schema
// that is older or wider than the type allows values that the type cannot hold. If that were an
// error, one such object would fail each list and each watch of its kind, in all namespaces.
package decode

import (
	"strings"

	"sigs.k8s.io/json"
)

// maxProblem is the max length of a problem in bytes. An error may quote a name of any length.
const maxProblem = 256

// Part decodes the JSON text of a spec or a status into a value of a type without its own
// UnmarshalJSON. If the text does not fit the type, it sets the value to its zero value and returns
// the reason. It returns an error only if the text is not JSON.
func Part[T any](text []byte, into *T) (problem string, err error) {
	err = json.UnmarshalCaseSensitivePreserveInts(text, into)
	if err == nil {
		return "", nil
	}
	if isSyntax, _ := json.SyntaxErrorOffset(err); isSyntax {
		return "", err
	}
	var zero T
	*into = zero
	return Problem(err), nil
}

// Problem returns the text of an error, truncated to 256 bytes.
func Problem(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxProblem)], "")
}
