package v1alpha1

import "github.com/stateful-operator/stateful-operator/apis/internal/decode"

// UnmarshalJSON decodes a spec. If the text does not fit the type, Problem has the error and all
// other fields are empty. It returns an error only if the text is not JSON.
func (s *StatefulClusterSpec) UnmarshalJSON(text []byte) (err error) {
	type plain StatefulClusterSpec // without this method
	into := plain(*s)
	into.Problem, err = decode.Part(text, &into)
	*s = StatefulClusterSpec(into)
	return err
}

// UnmarshalJSON decodes a status. If the text does not fit the type, Problem has the error and all
// other fields are empty. It returns an error only if the text is not JSON.
func (s *StatefulClusterStatus) UnmarshalJSON(text []byte) (err error) {
	type plain StatefulClusterStatus // without this method
	into := plain(*s)
	into.Problem, err = decode.Part(text, &into)
	*s = StatefulClusterStatus(into)
	return err
}
