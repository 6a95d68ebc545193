package v1

import "github.com/stateful-operator/stateful-operator/apis/internal/decode"

// UnmarshalJSON decodes a spec. If the text does not fit the type, Problem has the error and all
// other fields are empty. It returns an error only if the text is not JSON.
func (s *StatefulSingletonSpec) UnmarshalJSON(text []byte) (err error) {
	type plain StatefulSingletonSpec // without this method
	into := plain(*s)
	into.Problem, err = decode.Part(text, &into)
	*s = StatefulSingletonSpec(into)
	return err
}

// UnmarshalJSON decodes a status. If the text does not fit the type, Problem has the error and all
// other fields are empty. It returns an error only if the text is not JSON.
func (s *StatefulSingletonStatus) UnmarshalJSON(text []byte) (err error) {
	type plain StatefulSingletonStatus // without this method
	into := plain(*s)
	into.Problem, err = decode.Part(text, &into)
	*s = StatefulSingletonStatus(into)
	return err
}
