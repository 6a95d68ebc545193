// Package decode decodes the parts of an object so that a value that does not fit its Go type
// is data and no error.
//
// The API server checks an object against a schema, and decodes it into no type of ours. A schema
// that is older or wider than the type lets values pass that the type cannot hold. As an error,
// one such object would fail each list and each watch of its kind, in all namespaces.
package decode

import (
	"strings"

	"sigs.k8s.io/json"
)

// longestProblem is the max length of a problem in bytes. An error may quote a name of any length.
const longestProblem = 256

// Part decodes the JSON text of a spec or a status into a value of a type that has no UnmarshalJSON
// of its own. If the text does not fit the type, it sets the value to its zero value and returns
// why. It returns an error only if the text is no JSON.
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

// Problem returns the text of an error, of at most 256 bytes.
func Problem(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), longestProblem)], "")
}
